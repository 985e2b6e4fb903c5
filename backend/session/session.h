// Session: the one per process that owns recorder, monitor, exchange, collector and reporters. It is made with the
// process's first group and ends with the last; after that a new group makes a new session. Backends only write into its
// recorder.
//
// The root is the lowest rank of the group that the session was made with; it alone collects and reports.
//
// Contract: nothing here fails or delays the training job. end() is bounded: a thread that does not stop in time (a store
// that answers no more, a blocked disk) is left behind with what it owns, and one line says so.
//
// Fork: a child does not own its parent's session. There every function returns at once, and no thread is waited for.
//
// Threads: monitor on every rank, collector on the root. Stop order: monitor, then collector.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/base/process_bound.h"
#include "backend/base/settings.h"
#include "backend/exchange/exchange.h"
#include "backend/exchange/messages.h"
#include "backend/observe/recorder.h"
#include "backend/report/log.h"
#include "backend/session/mitigation_watch.h"

namespace straggler {

// Something that only looking at it tells of: Works without a callback, events of a device.
class Poller {
 public:
  virtual ~Poller() = default;
  // Looks once. Returns whether there is more to look at soon.
  virtual bool poll() noexcept = 0;
};

class Session {
 public:
  struct Options {
    int rank = 0;            // global
    std::vector<int> ranks;  // global, of all members, ascending
    Settings settings;
    std::shared_ptr<Recorder> recorder;
    std::shared_ptr<Exchange> exchange;  // to the root and from the ranks; null: no rank is reached
    std::string note;                    // what this session sees less of, or wrongly, said once; empty: nothing
    std::shared_ptr<Poller> poller;      // may be null
    std::shared_ptr<Log> log;            // where lines for people go; null: standard error
  };

  // Throws SettingsError if the folder for records cannot be written.
  explicit Session(Options options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::shared_ptr<Poller>& poller() const;
  // A group that there is no memory for is not recorded.
  void addGroup(const GroupInfo& group) noexcept;

  // Whom the monitor asks what mitigation does on this rank: the last one set; nobody, if that is empty. It may be asked
  // once more while, or just after, another is set, and destroyed on the monitor's thread, so it owns what it reads. One
  // that throws is asked no more. A session that has ended asks nobody.
  void setMitigation(MitigationSource source) noexcept;

  // The first call ends the session: the last gathering, and the report on the root. Later calls do nothing.
  void end() noexcept;

  // A `report` record as JSON text: on the root of what all ranks have told, elsewhere what the root has published last,
  // which may be up to some seconds old. Nothing in a forked child, or before the root has published.
  std::optional<std::string> report() const;

  // False in a forked child.
  bool owned() const;

 private:
  struct State;  // shared with the threads, so that one that is left behind keeps what it uses

  std::unique_ptr<std::thread> start(void (*loop)(State&)) noexcept;
  static void guarded(State& state, const char* stopped, const std::function<void()>& work);
  static void monitorLoop(State& state);
  static void collectorLoop(State& state);

  std::shared_ptr<State> state_;
  ProcessBound origin_;
  std::unique_ptr<std::thread> collector_;
  std::unique_ptr<std::thread> monitor_;
};

// ---- The process's session ----

// Joins the running session, or makes one if there is none, and adds the group.
std::shared_ptr<Session> joinSession(const GroupInfo& group, const std::function<Session::Options()>& options);

// Undoes one joinSession(). The last one ends the session; its report stays for lastReport().
void leaveSession(const std::shared_ptr<Session>& session) noexcept;

// Ends the running session now, whoever is still in it: at the exit of the interpreter.
void endSession() noexcept;

// Of the running session, or of the last one that ended.
std::optional<std::string> lastReport();

}  // namespace straggler
