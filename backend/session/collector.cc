#include "backend/session/collector.h"

#include <algorithm>
#include <utility>

#include "backend/exchange/codec.h"

namespace straggler {

Collector::Collector(SessionStart session, std::vector<std::shared_ptr<Exchange>> exchanges,
                     std::unique_ptr<Reporter> reporter, const Clock& clock)
    : exchanges_(std::move(exchanges)),
      reporter_(std::move(reporter)),
      publisher_(exchanges_),
      beat_(exchanges_, clock),
      model_(session.ranks, session.stepsPerWindow, session.detectorOptions()) {
  reporter_->started(session);
}

void Collector::round(Instant now) {
  begun_ = begun_.value_or(now);
  receive(now);
  arm(now, false);
  publish(now);
  askForClocks(now);
}

void Collector::askForClocks(Instant now) {
  if (beat_.due(now)) {
    const MutexLock lock(modelMutex_);
    beat_.ask(model_.clocks().loose(kMaxAsked), now);
  }
  beat_.round();
}

void Collector::publish(Instant now) {
  if (armed_ && publisher_.due(now, verdictChanged_)) {
    verdictChanged_ = false;
    publisher_.publish(report(), now);
  }
}

void Collector::receive(Instant now) {
  for (const auto& exchange : exchanges_) {
    while (const auto bytes = exchange->receive()) {
      const auto frame = decode(*bytes);
      {
        const MutexLock lock(modelMutex_);
        if (frame) {
          model_.apply(*frame);
        } else {
          ++badFrames_;
        }
      }
      if (frame) {
        reporter_->received(*frame);
        tellEvents(now);
      }
    }
  }
  const MutexLock lock(modelMutex_);
  recordsLost_ = reporter_->recordsLost();
}

void Collector::tellEvents(Instant now) {
  std::vector<Verdict> events;
  {
    const MutexLock lock(modelMutex_);
    events = model_.takeEvents();
  }
  for (const auto& event : events) {
    arm(now, true);  // what is measured is said before what was found
    verdictChanged_ = true;
    reporter_->changed(event, report());
  }
}

void Collector::arm(Instant now, bool mustArm) {
  if (armed_) {
    return;
  }
  const JobReport known = report();
  const bool complete = known.ranksReported == known.worldSize && !known.groups.empty();
  if (complete || mustArm || now - *begun_ >= kArmedPatience) {
    armed_ = true;
    reporter_->armed(known);
  }
}

bool Collector::allFinal() const {
  const MutexLock lock(modelMutex_);
  return model_.ranksFinal() == model_.ranks().size();
}

// What ranks still have to tell does not come over a transport that is gone.
bool Collector::isDeaf() const {
  return std::any_of(exchanges_.begin(), exchanges_.end(),
                     [](const auto& exchange) { return !exchange->lastError().empty(); });
}

bool Collector::finish(Instant now) {
  begun_ = begun_.value_or(now);
  if (!finishing_) {
    finishing_ = now;
    for (const auto& exchange : exchanges_) {
      exchange->ending();
    }
  }
  receive(now);
  if (!allFinal() && !isDeaf()) {
    if (!leavingAnnounced_ && now - *finishing_ >= kFinalPatience) {
      leavingAnnounced_ = true;
      for (const auto& exchange : exchanges_) {
        exchange->announceLeaving();
      }
    }
    if (now - *finishing_ < kFinalPatience + kLeavingPatience) {
      return false;
    }
  }
  arm(now, true);
  reporter_->ended(report());
  return true;
}

JobReport Collector::report() const {
  const MutexLock lock(modelMutex_);
  JobReport report = jobReport(model_, recordsLost_);
  if (badFrames_ > 0) {
    report.notes.push_back(std::to_string(badFrames_) + " frames could not be read and were passed over");
  }
  return report;
}

}  // namespace straggler
