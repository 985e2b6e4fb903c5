// Monitor: a rank's side of a session. It reads the recorder, finds steps, measures self time, writes operation records
// and tells the root, in summaries that stay under a byte rate.
//
// round() does one turn and returns; the thread that calls it belongs to the session, so tests call it with a fake clock.
//
// What goes out, at most about 1 KB a second: step windows (50 bytes each, thinned beyond kWindowsPerSecond; up to 60 more
// for what the operating system counted, which is thinned beyond kCountedWindowsPerSecond), a sample of arrivals (12 bytes
// each, thinned beyond kSamplesPerSecond), counters, what mitigation did if that changed (up to 300 bytes, after a window
// closed, at most every kMitigationPeriod), which operations the rank calls in each window if that changed (6 bytes for
// each group and kind; as a rule once), and a reading of the rank's clock a second while the root asks for it (30 bytes).
// What cannot be sent waits, bounded; beyond that the
// oldest summary is lost and counted. Thinning is by powers of two of step and op key, so ranks that thin differently
// still tell of the same steps and operations.
//
// Evidence of a window: its input time, and what the operating system counted (os_account.h), above all how long the
// training thread ran or waited for a processor. The totals are read whenever a window is closed, sent or not, and a window
// gets the difference from the reading before, so that it is of as many steps as the window. A window is closed when the monitor gets to it, up to one period
// after its end: that much may be counted in the next window instead of this one, and successive windows add up to the
// truth. The first window has no reading before it. On a device the thread that runs the backward is not counted.
//
// Thread safety: addGroup(), setMitigation() and published() may be called from any thread; all else is the session's
// thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/detect/self_time.h"
#include "backend/exchange/exchange.h"
#include "backend/exchange/messages.h"
#include "backend/observe/recorder.h"
#include "backend/observe/step_finder.h"
#include "backend/report/record_file.h"
#include "backend/session/clock_listener.h"
#include "backend/session/mitigation_watch.h"
#include "backend/session/os_account.h"

namespace straggler {

// Whether an operation belongs to the sample of 1 in `sampling`; the same answer on every rank.
bool isSampled(const OpKey& key, std::uint32_t sampling);

// The smallest power of two by which `rate` must be divided to stay within `limit`.
std::uint32_t thinning(double rate, double limit);

class Monitor {
 public:
  static constexpr double kWindowsPerSecond = 6;
  static constexpr double kCountedWindowsPerSecond = 1;
  static constexpr double kSamplesPerSecond = 56;
  static constexpr Duration kSendPeriod = std::chrono::milliseconds(250);
  static constexpr Duration kCountersPeriod = std::chrono::seconds(2);
  static constexpr Duration kMitigationPeriod = std::chrono::seconds(1);
  // Inner backends wake up who waits before they tell that an operation is complete: the last one's stamp may be on its way.
  static constexpr Duration kCompletionPatience = std::chrono::milliseconds(50);
  static constexpr std::size_t kMaxWaiting = 512;  // messages that could not be sent yet

  struct Options {
    int rank = 0;  // global
    int window = 10;
    RankHello hello;
    std::shared_ptr<Exchange> exchange;                // null: nobody is told
    std::unique_ptr<RecordFile> operations;            // null: no records
    std::function<void(const std::string&)> complain;  // one line, said once
    // What the operating system knows, and of the training thread by the kernel's id; null: nothing.
    std::function<OsTotals(int thread)> osTotals{};
    // What the rank's stamps are read from; outlives the monitor. Null: the root is not told of it.
    const Clock* clock = nullptr;
    Duration clockPeriod = std::chrono::seconds(1);  // how often it may be told, if the root asks
  };

  Monitor(Options options, std::shared_ptr<Recorder> recorder);

  // Announces the group to the root if this rank is the first of it.
  void addGroup(const GroupInfo& group);

  // Takes the place of the source before it, if any.
  void setMitigation(MitigationSource source) { mitigation_.setSource(std::move(source)); }

  void round(Instant now);

  // Whether the next turn should come within a millisecond.
  bool isHurried() const { return listener_ && listener_->listening(); }

  // The last turns: everything is read, closed and offered. Returns whether everything was sent; if not, it may be called
  // again until the caller's patience ends. Operations that are not complete are closed kCompletionPatience after the
  // first of these turns.
  bool finish(Instant now);

  // The report that the root has published last, as JSON text of a sender that is not to be trusted; nothing if none came.
  std::optional<std::string> published() const;

 private:
  using Uses = std::set<OperationUse>;

  void read(Instant now);
  void processBatch();
  void process(const Operation& operation);
  std::string recordOf(const Operation& operation);
  void closeStep(const StepEnd& step);
  void closeWindow();
  void tellProgram();
  bool isOneIn(std::uint32_t stride) const;
  void addEvidence();
  void adjustThinning(Instant now);
  void queue(Message message);
  void tellMitigation(Instant now);
  void queueMitigation();
  RankCounters counters(bool final) const;
  bool send(Instant now);
  bool sendWaiting();
  void queueFinal();
  void leave();
  void hearReport();
  void hearBeat(Instant now);

  Options options_;
  std::shared_ptr<Recorder> recorder_;
  StepFinder finder_;
  SelfTime selfTime_;
  StepWindow window_;
  Duration windowLength_{};
  Duration windowInput_{};
  std::optional<OsTotals> lastTotals_;  // when the last window was closed
  Uses uses_;                           // since then
  std::deque<Uses> recentUses_;         // of the windows before
  std::optional<RankProgram> toldProgram_;
  ArrivalSamples samples_;
  std::vector<Operation> batch_;
  std::vector<Fetch> fetches_;

  std::deque<Message> waiting_;
  std::uint64_t messagesLost_ = 0;
  std::optional<Instant> lastSend_;
  std::optional<Instant> lastCounters_;
  MitigationWatch mitigation_;
  bool windowClosed_ = false;  // since mitigation was last asked for news
  std::optional<Instant> lastMitigation_;
  std::optional<ClockListener> listener_;
  bool connected_ = true;
  std::optional<Instant> finishing_;
  bool finalQueued_ = false;

  // Since the last look at the rates.
  std::optional<Instant> ratesSince_;
  std::uint64_t operationsRead_ = 0;
  std::uint64_t windowsClosed_ = 0;
  std::uint32_t stride_ = 1;
  std::uint32_t countedStride_ = 1;  // of the windows that tell what was counted

  mutable Mutex groupsMutex_;
  std::map<GroupId, GroupInfo> groups_ GUARDED_BY(groupsMutex_);
  std::vector<GroupInfo> newGroups_ GUARDED_BY(groupsMutex_);

  mutable Mutex publishedMutex_;
  std::optional<std::string> published_ GUARDED_BY(publishedMutex_);
};

}  // namespace straggler
