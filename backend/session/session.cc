#include "backend/session/session.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <utility>

#include "backend/report/json_reporter.h"
#include "backend/report/text_reporter.h"
#include "backend/session/collector.h"
#include "backend/session/local_exchange.h"
#include "backend/session/monitor.h"

namespace straggler {
namespace {

constexpr Duration kPollPeriod = std::chrono::milliseconds(1);      // while something must be polled
constexpr Duration kMonitorPeriod = std::chrono::milliseconds(25);  // else
constexpr Duration kCollectorPeriod = std::chrono::milliseconds(50);
// How often a rank looks whether the root asks for its clock: of all ranks together, so often a second.
constexpr Duration kClockPeriod = std::chrono::seconds(1);
constexpr std::int64_t kClockLooksPerSecond = 512;
constexpr Duration kFinishPeriod = std::chrono::milliseconds(2);
constexpr Duration kSendPatience = std::chrono::seconds(1);         // for the last messages
constexpr Duration kStopPatience = std::chrono::milliseconds(500);  // beyond what a thread may use by itself
constexpr Duration kLogPatience = std::chrono::milliseconds(500);   // until what was said is out

// What a process knows of its session. Never destroyed: threads that were left behind and late destructors may still
// come by at the end of the process.
struct Process {
  Mutex mutex;
  std::shared_ptr<Session> session GUARDED_BY(mutex);
  std::size_t members GUARDED_BY(mutex) = 0;
  std::optional<std::string> lastReport GUARDED_BY(mutex);
};

std::atomic<Process*> processInstance{nullptr};

// A forked child starts anew: the parent's mutex may be held by a thread that does not exist in it.
Process& process() {
  static const int registered = [] {
    processInstance = new Process;
    return pthread_atfork(nullptr, nullptr, [] { processInstance = new Process; });
  }();
  (void)registered;
  return *processInstance;
}

std::string hostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("?");
}

std::string rankFileName(int rank) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "rank-%05d.jsonl", rank);
  return name.data();
}

std::int64_t unixTimeNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::unique_ptr<Reporter> makeReporter(const Session::Options& options, const RecordFile::Complain& complain) {
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(std::make_unique<TextReporter>(options.log));
  if (!options.settings.directory.empty()) {
    reporters.push_back(std::make_unique<JsonReporter>(
        std::make_unique<RecordFile>(options.settings.directory, "job.jsonl", complain)));
  }
  return std::make_unique<CompositeReporter>(std::move(reporters));
}

}  // namespace

struct Session::State {
  SteadyClock clock;
  std::shared_ptr<Log> log;
  std::function<void(const std::string& reason)> complain;
  // The same in two parts. Where there is no memory even for the line, nothing is said.
  void complainOf(const char* what, const char* why) const noexcept {
    try {
      complain(std::string(what) + why);
    } catch (const std::exception&) {
    }
  }
  std::shared_ptr<Poller> poller;
  std::unique_ptr<Monitor> monitor;
  std::unique_ptr<Collector> collector;  // null: not the root

  Mutex mutex;
  CondVar changed;
  // Set with the mutex held, so that no wake-up is missed.
  using Flag = std::atomic<bool>;
  Flag monitorMustStop = false;
  Flag collectorMustStop = false;
  Flag monitorStopped = false;
  Flag collectorStopped = false;

  // Sleeps, but wakes up at once when `flag` is set; says whether it is.
  bool sleep(Duration duration, const Flag& flag) {
    const MutexLock lock(mutex);
    return changed.waitFor(mutex, duration, [&flag] { return flag.load(); });
  }
  void set(Flag& flag) {
    const MutexLock lock(mutex);
    flag = true;
    changed.notifyAll();
  }
};

Session::Session(Options options) : state_(std::make_shared<State>()) {
  options.log = options.log ? options.log : std::make_shared<DescriptorLog>(2);
  state_->log = options.log;
  const auto complain = [log = options.log, rank = options.rank](const std::string& reason) {
    log->line(Severity::kWarning, "straggler: rank " + std::to_string(rank) + ": " + reason + "; training goes on");
  };
  // A rank's files are in one folder, and what befalls one befalls the others: it is said of the first.
  const auto complainRecords = [complain,
                                said = std::make_shared<std::atomic<bool>>(false)](const std::string& reason) {
    if (!said->exchange(true)) {
      complain("records are lost: " + reason);
    }
  };
  state_->complain = complain;
  if (!options.note.empty()) {
    complain(options.note);
  }

  Monitor::Options monitor{options.rank,
                           options.settings.window,
                           {hostName(), getpid(), clockDomain()},
                           options.exchange,
                           nullptr,
                           complain,
                           [account = std::make_shared<OsAccount>()](int thread) { return account->totals(thread); },
                           &state_->clock,
                           kClockPeriod * (1 + static_cast<std::int64_t>(options.ranks.size()) / kClockLooksPerSecond)};
  if (!options.settings.directory.empty()) {
    monitor.operations =
        std::make_unique<RecordFile>(options.settings.directory, rankFileName(options.rank), complainRecords);
  }
  if (options.rank == options.ranks.front()) {
    auto local = std::make_shared<LocalExchange>();
    monitor.exchange = local;
    std::vector<std::shared_ptr<Exchange>> exchanges = {local};
    if (options.exchange) {
      exchanges.push_back(options.exchange);
    }
    state_->collector =
        std::make_unique<Collector>(SessionStart{options.ranks, options.settings.window, unixTimeNs(),
                                                 options.settings.rule, options.settings.multiplier},
                                    std::move(exchanges), makeReporter(options, complainRecords), state_->clock);
  }
  state_->monitor = std::make_unique<Monitor>(std::move(monitor), options.recorder);
  state_->poller = options.poller;
  if (state_->collector) {
    collector_ = start(&collectorLoop);
  }
  monitor_ = start(&monitorLoop);
}

// Without its thread a session records until the ring is full, and then counts.
std::unique_ptr<std::thread> Session::start(void (*loop)(State&)) noexcept {
  try {
    return std::make_unique<std::thread>([state = state_, loop] { loop(*state); });
  } catch (const std::exception& error) {
    state_->complainOf("no thread could be started to observe with: ", error.what());
    return nullptr;
  }
}

Session::~Session() {
  end();
  // In a forked child the threads do not exist: their handles are given up, not joined.
  if (!owned()) {
    (void)monitor_.release();
    (void)collector_.release();
  }
}

bool Session::owned() const { return origin_.here(); }

void Session::addGroup(const GroupInfo& group) noexcept {
  if (!owned()) {
    return;
  }
  try {
    state_->monitor->addGroup(group);
  } catch (const std::exception& error) {
    state_->complainOf("a group is not recorded: ", error.what());
  }
}

void Session::setMitigation(MitigationSource source) noexcept {
  if (!owned()) {
    return;
  }
  try {
    state_->monitor->setMitigation(std::move(source));
  } catch (const std::exception& error) {
    state_->complainOf("what mitigation does is not reported: ", error.what());
  }
}

const std::shared_ptr<Poller>& Session::poller() const { return state_->poller; }

std::optional<std::string> Session::report() const {
  if (!owned()) {
    return std::nullopt;
  }
  return state_->collector ? std::optional(toJson(state_->collector->report())) : state_->monitor->published();
}

// ---- Threads ----

// Whatever goes wrong on a thread of ours (no memory left, say) ends that thread's work, never the process.
void Session::guarded(State& state, const char* stopped, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    state.complainOf(stopped, error.what());
  }
}

void Session::monitorLoop(State& state) {
  guarded(state, "the monitor stopped: ", [&state] {
    bool stop = false;
    while (!stop) {
      const bool pollSoon = state.poller && state.poller->poll();
      state.monitor->round(state.clock.now());
      const bool soon = pollSoon || state.monitor->isHurried();
      stop = state.sleep(soon ? kPollPeriod : kMonitorPeriod, state.monitorMustStop);
    }
    const Instant begun = state.clock.now();
    while (!state.monitor->finish(state.clock.now()) && state.clock.now() - begun < kSendPatience) {
      std::this_thread::sleep_for(kFinishPeriod);
      if (state.poller) {
        state.poller->poll();
      }
    }
  });
  state.set(state.monitorStopped);
}

void Session::collectorLoop(State& state) {
  guarded(state, "the collector stopped: ", [&state] {
    while (!state.sleep(kCollectorPeriod, state.collectorMustStop)) {
      state.collector->round(state.clock.now());
    }
    while (!state.collector->finish(state.clock.now())) {
      std::this_thread::sleep_for(kFinishPeriod);
    }
  });
  state.set(state.collectorStopped);
}

namespace {

void leftBehind(Log& log) noexcept {
  try {
    log.line(Severity::kWarning, "straggler: a thread did not stop in time and was left behind");
  } catch (const std::exception&) {  // no memory for the line
  }
}

}  // namespace

void Session::end() noexcept {
  if (!owned()) {
    return;
  }
  const auto stop = [this](std::unique_ptr<std::thread>& thread, State::Flag& mustStop, State::Flag& stopped,
                           Duration patience) {
    if (!thread || !thread->joinable()) {
      return;
    }
    state_->set(mustStop);
    if (state_->sleep(patience + kStopPatience, stopped)) {
      thread->join();
    } else {
      thread->detach();
      leftBehind(*state_->log);
    }
  };
  stop(monitor_, state_->monitorMustStop, state_->monitorStopped, kSendPatience);
  stop(collector_, state_->collectorMustStop, state_->collectorStopped,
       Collector::kFinalPatience + Collector::kLeavingPatience);
  state_->log->flush(kLogPatience);
}

// ---- The process's session ----

namespace {

// Ends the session if it is the running one, outside of the lock.
void endRunning(const std::shared_ptr<Session>& session) noexcept {
  session->end();
  std::optional<std::string> report;
  try {
    report = session->report();
  } catch (const std::exception&) {  // no memory: the report before it stays
  }
  Process& p = process();
  const MutexLock lock(p.mutex);
  if (report) {
    p.lastReport = std::move(report);
  }
}

}  // namespace

std::shared_ptr<Session> joinSession(const GroupInfo& group, const std::function<Session::Options()>& options) {
  Process& p = process();
  const MutexLock lock(p.mutex);
  if (!p.session || !p.session->owned()) {
    p.session = std::make_shared<Session>(options());
    p.members = 0;
  }
  ++p.members;
  p.session->addGroup(group);
  return p.session;
}

void leaveSession(const std::shared_ptr<Session>& session) noexcept {
  if (!session || !session->owned()) {
    return;
  }
  Process& p = process();
  {
    const MutexLock lock(p.mutex);
    if (p.session != session || --p.members > 0) {
      return;
    }
    p.session.reset();
  }
  endRunning(session);
}

void endSession() noexcept {
  Process& p = process();
  std::shared_ptr<Session> session;
  {
    const MutexLock lock(p.mutex);
    session = std::exchange(p.session, nullptr);
  }
  if (session && session->owned()) {
    endRunning(session);
  }
}

std::optional<std::string> lastReport() {
  Process& p = process();
  std::shared_ptr<Session> session;
  {
    const MutexLock lock(p.mutex);
    session = p.session;
    if (!session) {
      return p.lastReport;
    }
  }
  return session->report();
}

}  // namespace straggler
