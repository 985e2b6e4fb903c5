// Collector: the root's side of a session. It takes in the ranks' frames, keeps the job's model, reports, and publishes the
// report in brief for the other ranks.
//
// round() does one turn and returns; the thread that calls it belongs to the session. Reporters run on that thread: one
// that blocks delays reports and nothing else.
//
// Thread safety: report() may be called from any thread; all else is the session's thread alone. Lock order: modelMutex_
// is a leaf; reporters are never called under it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/detect/job_model.h"
#include "backend/exchange/exchange.h"
#include "backend/report/reporter.h"
#include "backend/session/clock_beat.h"
#include "backend/session/publisher.h"

namespace straggler {

class Collector {
 public:
  // After so long, the armed line is written with the ranks heard so far.
  static constexpr Duration kArmedPatience = std::chrono::seconds(10);
  // At the end: how long ranks are waited for before the root says that it leaves, and then for what they still send. They
  // look four times a second.
  static constexpr Duration kFinalPatience = std::chrono::seconds(1);
  static constexpr Duration kLeavingPatience = std::chrono::milliseconds(500);

  // `exchanges`: where frames come from. `clock`: that of the root's stamps; it outlives the collector.
  Collector(SessionStart session, std::vector<std::shared_ptr<Exchange>> exchanges, std::unique_ptr<Reporter> reporter,
            const Clock& clock);

  void round(Instant now);

  // The last turns: call again until it returns true, which it does once every rank has told its end, a transport is gone,
  // or the patience ends. Then the report has been written.
  bool finish(Instant now);

  JobReport report() const;

 private:
  void receive(Instant now);
  void tellEvents(Instant now);
  // Once armed, and when it is due.
  void publish(Instant now);
  void askForClocks(Instant now);
  void arm(Instant now, bool mustArm);
  bool allFinal() const;
  bool isDeaf() const;

  std::vector<std::shared_ptr<Exchange>> exchanges_;
  std::unique_ptr<Reporter> reporter_;
  Publisher publisher_;
  ClockBeat beat_;
  bool verdictChanged_ = false;  // since the last publication
  std::optional<Instant> begun_;
  std::optional<Instant> finishing_;
  bool leavingAnnounced_ = false;
  bool armed_ = false;

  mutable Mutex modelMutex_;
  JobModel model_ GUARDED_BY(modelMutex_);
  std::uint64_t badFrames_ GUARDED_BY(modelMutex_) = 0;
  std::uint64_t recordsLost_ GUARDED_BY(modelMutex_) = 0;
};

}  // namespace straggler
