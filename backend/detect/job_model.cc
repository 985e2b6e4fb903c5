#include "backend/detect/job_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/detect/arrival_pattern.h"
#include "backend/detect/job_verdict.h"
#include "backend/detect/reasons.h"

namespace straggler {
namespace {

constexpr std::size_t kMaxGroups = 4096;
constexpr std::size_t kMaxGroupMembers = std::size_t{1} << 20;  // of all groups: 4 MB
constexpr double kNearlyAll = 0.75;                             // of the ranks

std::vector<RankModel> modelsOf(const std::vector<int>& ranks) {
  std::vector<RankModel> models(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    models[i].rank = ranks[i];
  }
  return models;
}

}  // namespace

JobModel::JobModel(std::vector<int> ranks, int stepsPerWindow, DetectorOptions options)
    : ranks_(modelsOf(ranks)),
      clocks_(ranks.empty() ? 0 : ranks.front()),
      options_(options),
      stepsPerWindow_(stepsPerWindow),
      programs_(ranks.size()) {
  setClasses({ranks});
  verdict_ = inForce();
}

std::string JobModel::ruleText() const {
  return describe(options_.rule, options_.multiplier, ranks_.size(), options_.absoluteGateMs, options_.relativeGate);
}

std::optional<std::size_t> JobModel::positionOf(int rank) const {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank,
                                      [](const RankModel& model, int value) { return model.rank < value; });
  return place == ranks_.end() || place->rank != rank ? std::nullopt
                                                      : std::optional(static_cast<std::size_t>(place - ranks_.begin()));
}

void JobModel::apply(const Frame& frame) {
  const auto position = positionOf(frame.rank);
  if (!position) {
    ++strangers_;
    return;
  }
  classes_[ranks_[*position].classIndex].windows().sentAtOnce(
      std::count_if(frame.messages.begin(), frame.messages.end(),
                    [](const auto& message) { return std::holds_alternative<StepWindow>(message); }));
  for (const auto& message : frame.messages) {
    std::visit([&](const auto& m) { apply(ranks_[*position], m); }, message);
  }
}

void JobModel::apply(RankModel& rank, const RankHello& hello) {
  rank.hello = hello;
  clocks_.setDomain(rank.rank, hello.clockDomain);
}

void JobModel::apply(RankModel& /*rank*/, const GroupInfo& group) {
  const auto known = groups_.find(group.id());
  const std::size_t before = known == groups_.end() ? 0 : known->second.ranks.size();
  const std::size_t members = groupMembers_ - before + group.ranks.size();
  if ((groups_.size() < kMaxGroups || known != groups_.end()) && members <= kMaxGroupMembers) {
    groupMembers_ = members;
    groups_[group.id()] = group;
    arrivals_.setGroupSize(group.id(), group.ranks.size());
    programsChanged_ = true;
  }
}

void JobModel::apply(RankModel& rank, const StepWindow& window) {
  foundBy_ = std::max(foundBy_, window.foundBy);
  largestStride_ = std::max(largestStride_, window.stride);
  const auto warmUp =
      static_cast<std::size_t>(std::clamp<std::int64_t>(kWarmUpSteps - window.firstStep, 0, kWarmUpSteps));
  if (window.selfUs.size() <= warmUp) {
    return;
  }
  const auto mean = [steps = static_cast<double>(window.selfUs.size())](std::uint64_t us) {
    return static_cast<double>(us) / 1e3 / steps;
  };
  const auto meanIfKnown = [&mean](const std::optional<std::uint64_t>& us) {
    return us ? std::optional(mean(*us)) : std::nullopt;
  };
  RankWindow share{{},
                   mean(window.durationUs),
                   meanIfKnown(window.inputUs),
                   meanIfKnown(window.cpuUs),
                   meanIfKnown(window.runDelayUs),
                   OsEvidence(window.os, window.selfUs.size())};
  for (std::size_t step = warmUp; step < window.selfUs.size(); ++step) {
    share.selfMs.push_back(window.selfUs[step] / 1e3);
    rank.selfMs.add(share.selfMs.back());
    rank.durationMs.add(share.stepMs);
  }
  regroup();
  const std::int64_t firstStep = window.firstStep + static_cast<std::int64_t>(warmUp);
  for (const auto& row : classes_[rank.classIndex].windows().add(rank.place, firstStep, std::move(share))) {
    judge(rank.classIndex, row);
  }
}

void JobModel::apply(RankModel& rank, const ArrivalSamples& samples) {
  largestSampling_ = std::max(largestSampling_, samples.sampling);
  for (const auto& sample : samples.operations) {
    if (const auto complete = arrivals_.add(rank.rank, sample)) {
      compare(sample.key, *complete);
      addTransfer(sample, *complete);
    }
  }
}

void JobModel::apply(RankModel& rank, const RankCounters& counters) { rank.counters = counters; }

void JobModel::apply(RankModel& rank, const MitigationSummary& summary) {
  rank.mitigation = summary;
  fillsSlots_ = fillsSlots_ || summary.armed || summary.filledByProxy > 0;
}

void JobModel::apply(RankModel& rank, const ClockReading& reading) {
  clocks_.observe(rank.rank, {reading.rootBefore, reading.after, reading.before, reading.rootAfter});
}

void JobModel::apply(RankModel& rank, const RankProgram& program) {
  programs_[static_cast<std::size_t>(&rank - ranks_.data())] = program;
  programsChanged_ = true;
}

// ---- Classes ----

// Before anything was judged other classes count at once, later if they last.
void JobModel::regroup() {
  if (std::exchange(programsChanged_, false)) {
    pipeline_ = isPipeline(programs_);
    std::vector<int> all;
    std::vector<PeerClass> now;
    for (const auto& rank : ranks_) {
      all.push_back(rank.rank);
    }
    for (const auto& ofClass : classes_) {
      now.push_back(ofClass.ranks());
    }
    auto classes = peerClasses(all, programs_, groups_);
    if (!classes || *classes == now) {
      proposed_.reset();
    } else if (proposed_ != classes) {
      proposed_ = std::move(classes);
      windowsSinceProposed_ = 0;
    }
  }
  if (proposed_ && (windowsCompared() == 0 || ++windowsSinceProposed_ > kSettled * ranks_.size())) {
    setClasses(*std::exchange(proposed_, std::nullopt));
  }
}

// A class that stays keeps what is known of it.
void JobModel::setClasses(const std::vector<PeerClass>& classes) {
  windowsLateBefore_ = windowsLate();
  windowsPassedOverBefore_ = windowsPassedOver();
  stages_ = Stages();
  std::vector<ClassModel> before = std::exchange(classes_, {});
  for (const auto& ranks : classes) {
    const auto same =
        std::find_if(before.begin(), before.end(), [&](const ClassModel& old) { return old.ranks() == ranks; });
    if (same != before.end()) {
      windowsLateBefore_ -= same->windows().late();
      windowsPassedOverBefore_ -= same->windows().passedOver();
    }
    classes_.push_back(same != before.end() ? std::move(*same)
                                            : ClassModel(ranks, ranks_.size(), stepsPerWindow_, options_));
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      RankModel& rank = ranks_[*positionOf(ranks[place])];
      rank.classIndex = classes_.size() - 1;
      rank.place = place;
    }
  }
}

void JobModel::judge(std::size_t classIndex, const WindowRow& row) {
  ClassModel& ofClass = classes_[classIndex];
  if (row.complete()) {
    compareSteps(ofClass, row);
  }
  std::vector<ArrivalCounts> arrivals;
  for (const int number : ofClass.ranks()) {
    const RankModel& rank = ranks_[*positionOf(number)];
    arrivals.push_back({rank.lastCertain, rank.timesLast, rank.lastMoreLikely});
  }
  std::vector<Level> others;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (i != classIndex && classes_[i].level()) {
      others.push_back(*classes_[i].level());
    }
  }
  for (auto& event : ofClass.judge(row, std::move(arrivals), others)) {
    tell(std::move(event));
  }
  judgeTransfers(ofClass);
  judgeJob();
  if (classIndex == 0) {
    judgeStages();
  }
  verdict_ = inForce();
}

// Of one class its detector says what concerns all. Of several, the job is slower if nearly all are slower than they were.
void JobModel::judgeJob() {
  if (classes_.size() == 1) {
    return;
  }
  std::size_t slower = 0;
  for (const auto& ofClass : classes_) {
    slower += ofClass.detector().pace.slower() ? ofClass.ranks().size() : 0;
  }
  const bool allSlower = static_cast<double>(slower) >= kNearlyAll * static_cast<double>(ranks_.size());
  if (allSlower != std::exchange(allSlower_, allSlower)) {
    tell(allSlower ? jobWideVerdict()
                   : verdictOf(VerdictKind::kCleared, classes_.front().lastStep(),
                               "self time is as before on most of the ranks"));
  }
}

Verdict JobModel::jobWideVerdict() const {
  const auto& worst = *std::max_element(classes_.begin(), classes_.end(), [](const auto& a, const auto& b) {
    return a.detector().pace.excessMs() < b.detector().pace.excessMs();
  });
  const Pace& pace = worst.detector().pace;
  Verdict made = verdictOf(VerdictKind::kJobWide, worst.lastStep(), jobWideReason(pace));
  made.excessMs = pace.excessMs();
  made.share = worst.stepMs() > 0 ? std::optional(pace.excessMs() / worst.stepMs()) : std::nullopt;
  made.sinceStep = pace.sinceStep();
  made.confidence = pace.confidence();
  return made;
}

void JobModel::judgeTransfers(ClassModel& ofClass) {
  if (!ofClass.takeTransfersChanged()) {
    return;
  }
  const Transfers& transfers = ofClass.transfers();
  if (transfers.slow()) {
    tell(networkVerdict(ofClass));
  } else {
    tell(verdictOf(VerdictKind::kCleared, ofClass.lastStep(), transfersOverReason(transfers, ofClass.lastStep())));
  }
}

Verdict JobModel::networkVerdict(const ClassModel& ofClass) const {
  const Transfers& transfers = ofClass.transfers();
  std::vector<GroupInfo> slow;
  for (const GroupId group : transfers.slowGroups()) {
    slow.push_back(groups_.at(group));
  }
  Verdict made = verdictOf(VerdictKind::kNetwork, ofClass.lastStep(), networkReason(transfers, slow));
  made.cause = "network";
  made.group = slow.empty() ? "" : slow.front().name;
  made.excessMs = transfers.excessMs();
  made.share = ofClass.stepMs() > 0 ? std::optional(*made.excessMs / ofClass.stepMs()) : std::nullopt;
  made.sinceStep = transfers.sinceStep();
  made.confidence = transfers.confidence();
  return made;
}

Verdict JobModel::verdictOf(VerdictKind kind, std::int64_t step, std::string reason) const {
  Verdict made;
  made.kind = kind;
  made.rule = toString(options_.rule);
  made.step = step;
  made.reason = std::move(reason);
  return made;
}

Verdict JobModel::inForce() const {
  std::vector<const Verdict*> ofClasses;
  std::vector<Verdict> ofJob;
  for (const auto& ofClass : classes_) {
    ofClasses.push_back(&ofClass.detector().verdict);
    if (ofClass.transfers().slow()) {
      ofJob.push_back(networkVerdict(ofClass));
    }
  }
  if (allSlower_) {
    ofJob.push_back(jobWideVerdict());
  }
  if (stages_.uneven()) {
    ofJob.push_back(stageVerdict());
  }
  return jobVerdict(ofClasses, ofJob);
}

void JobModel::tell(Verdict event) {
  history_.push_back(event);
  events_.push_back(std::move(event));
  while (history_.size() > kMaxHistory) {
    history_.pop_front();
  }
}

// Without its slowest rank, a step would have been shorter by what that rank is behind the second slowest.
void JobModel::compareSteps(const ClassModel& ofClass, const WindowRow& row) {
  std::size_t steps = row.ranks.front()->selfMs.size();
  for (const auto& rank : row.ranks) {
    steps = std::min(steps, rank->selfMs.size());
  }
  if (&ofClass == &classes_.front()) {
    stepsCompared_ += steps;
    comparedMs_ += row.ranks.front()->stepMs * static_cast<double>(steps);
  }
  for (std::size_t step = 0; step < steps; ++step) {
    std::size_t slowest = 0;
    double second = 0;
    for (std::size_t i = 1; i < row.ranks.size(); ++i) {
      const double self = row.ranks[i]->selfMs[step];
      const double largest = row.ranks[slowest]->selfMs[step];
      second = std::max(second, std::min(self, largest));
      slowest = self > largest ? i : slowest;
    }
    if (row.ranks.size() > 1) {
      ranks_[*positionOf(ofClass.ranks()[slowest])].lostMs += row.ranks[slowest]->selfMs[step] - second;
    }
  }
}

void JobModel::compare(const OpKey& key, const std::vector<RankSample>& samples) {
  clocks_.hear(samples);
  if (completesTogether(key.kind) && !fillsSlots_) {
    clocks_.observe(samples);
  }
  const auto arrivals = clocks_.compare(samples);
  if (!arrivals || arrivals->size() < 2 || key.sequence < kWarmUpOperations) {
    return;
  }
  const ArrivalPattern pattern = arrivalPattern(key, *arrivals);
  auto& kind = kinds_.at(static_cast<std::size_t>(key.kind));
  kind.skewMs.add(toMilliseconds(pattern.skew));
  kind.boundMs.add(toMilliseconds(pattern.bound));
  for (const auto& [rank, lateness] : pattern.lateness) {
    if (const auto position = positionOf(rank)) {
      ranks_[*position].latenessMs.add(toMilliseconds(lateness));
      if (pattern.lastIsCertain) {
        ranks_[*position].lastCertain += 1;
        ranks_[*position].timesLast += rank == pattern.lastArriver ? 1 : 0;
        ranks_[*position].lastMoreLikely +=
            static_cast<double>(ranks_.size()) / static_cast<double>(pattern.lateness.size()) - 1;
      }
    }
  }
}

namespace {

template <class Value>
std::uint64_t largest(const std::vector<ClassModel>& classes, Value&& value) {
  std::uint64_t most = 0;
  for (const auto& ofClass : classes) {
    most = std::max(most, value(ofClass));
  }
  return most;
}

}  // namespace

std::uint64_t JobModel::windowsCompared() const {
  return largest(classes_, [](const ClassModel& c) { return c.detector().windows; });
}

std::uint64_t JobModel::windowsIncomplete() const {
  return largest(classes_, [](const ClassModel& c) { return c.detector().incomplete; });
}

std::uint64_t JobModel::windowsAbstained() const {
  return largest(classes_, [](const ClassModel& c) { return c.detector().abstained; });
}

std::uint64_t JobModel::windowsLate() const {
  std::uint64_t late = windowsLateBefore_;
  for (const auto& ofClass : classes_) {
    late += ofClass.windows().late();
  }
  return late;
}

std::uint64_t JobModel::windowsPassedOver() const {
  std::uint64_t passedOver = windowsPassedOverBefore_;
  for (const auto& ofClass : classes_) {
    passedOver += ofClass.windows().passedOver();
  }
  return passedOver;
}

// ---- Stages ----

// Once for each window of the first class, with what is known of the others then.
void JobModel::judgeStages() {
  std::vector<StageLoad> loads;
  bool blamed = false;
  for (const auto& ofClass : classes_) {
    if (ofClass.load().stepMs > 0) {
      loads.push_back(ofClass.load());
    }
    blamed = blamed || ofClass.detector().verdict.kind == VerdictKind::kStraggler;
  }
  if (!pipeline_ || loads.size() < classes_.size()) {
    return;
  }
  const std::int64_t step = classes_.front().lastStep();
  if (stages_.add(loads, classes_.front().firstStep(), blamed, std::log(options_.falseAlarmWindows)) && !blamed) {
    tell(stages_.uneven()
             ? stageVerdict()
             : verdictOf(VerdictKind::kCleared, step,
                         "no stage limits the pipeline by as much any more, up to step " + std::to_string(step)));
  }
}

Verdict JobModel::stageVerdict() const {
  const PeerClass& limiting = classes_[stages_.limiting()].ranks();
  Verdict made = verdictOf(VerdictKind::kImbalance, classes_.front().lastStep(), stageReason(stages_, limiting));
  made.cause = "stage_imbalance";
  made.excessMs = stages_.excessMs();
  made.share = stages_.share();
  made.sinceStep = stages_.sinceStep();
  made.confidence = stages_.confidence();
  return made;
}

// ---- Operations ----

// At most the smallest wait of its ranks: the last arriver's is the transfer.
void JobModel::addTransfer(const ArrivalSample& last, const std::vector<RankSample>& samples) {
  if (!completesTogether(last.key.kind) || samples.size() < 2 || last.key.sequence < kWarmUpOperations) {
    return;
  }
  Duration smallest = Duration::max();
  for (const auto& sample : samples) {
    if (!sample.completed) {
      return;
    }
    smallest = std::min(smallest, *sample.completed - sample.arrival);
  }
  const auto first = positionOf(groups_.at(last.key.group).ranks.front());
  if (first && smallest >= Duration::zero()) {
    classes_[ranks_[*first].classIndex].transfers().add(last.key, last.sizeClass, toMilliseconds(smallest),
                                                        largestSampling_);
  }
}

std::size_t JobModel::ranksHeard() const {
  return static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.hello.has_value(); }));
}

std::size_t JobModel::ranksFinal() const {
  return static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.counters.final; }));
}

}  // namespace straggler
