#include "backend/detect/detector.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "backend/detect/cause.h"
#include "backend/detect/reasons.h"
#include "backend/detect/statistics.h"

namespace straggler {
namespace {

constexpr std::size_t kMinWindows = 3;
constexpr std::size_t kMinNoise = 5;          // windows before noise from window to window counts
constexpr std::uint64_t kMinOperations = 20;  // before arrivals can contradict
constexpr std::size_t kPastWindows = 10;      // of moving_average
constexpr double kPastAbsoluteGateMs = 1;     // of a rank beside its own past, as of the pace
constexpr double kPastRelativeGate = 0.1;

using Change = Cusum::Change;

// One decision. It lives for one call of decide().
class Judgement {
 public:
  Judgement(DetectorState& state, const DetectorInput& input, const DetectorOptions& options)
      : state_(state),
        input_(input),
        options_(options),
        window_(input.window),
        ranks_(input.ranks.size()),
        jobRanks_(std::max(ranks_, input.jobRanks)) {}

  std::vector<Verdict> run();

 private:
  bool comparable() const { return ranks_ >= 2 || input_.ownPastMs; }
  bool isAllOfTheJob() const { return jobRanks_ == ranks_; }
  bool enoughTold() const {
    return input_.ownPastMs ? window_.told == 1 : window_.told >= 2 && 2 * window_.told >= ranks_;
  }
  double gate() const;
  void takeNoise();
  void judgeRanks();
  Change judge(std::size_t position);
  bool isAbove(std::size_t position) const;
  void settle(std::size_t position, Change change);
  bool contradicts(std::size_t position, const Evidence& evidence) const;
  void judgeJob();
  void tellMissing();
  void tellCleared();
  void tellStragglers();
  bool mustTellAgain(const Verdict& now) const;
  void tellJob(bool begun, Verdict now, std::string overReason);
  void tell(Verdict verdict) { events_.push_back(std::move(verdict)); }

  std::vector<std::size_t> named() const;
  Verdict verdict(VerdictKind kind, std::string reason) const;
  Verdict stragglerVerdict() const;
  Verdict contradicted(std::size_t position) const;
  template <class Finding>
  Verdict verdictOn(const Finding& finding, VerdictKind kind, std::string reason) const;
  Verdict jobWideVerdict() const;
  Verdict imbalanceVerdict() const;
  Verdict nobody() const;
  Verdict inForce() const;
  std::optional<double> shareOf(double excessMs) const {
    return window_.stepMs > 0 ? std::optional(excessMs / window_.stepMs) : std::nullopt;
  }

  DetectorState& state_;
  const DetectorInput& input_;
  const DetectorOptions& options_;
  const WindowComparison& window_;
  std::size_t ranks_;
  std::size_t jobRanks_;
  double gateMs_ = 0;
  double noiseMs_ = 0;
  double limit_ = 0;
  double referenceMs_ = 0;
  std::vector<std::size_t> begun_;
  std::vector<std::size_t> over_;
  std::vector<Verdict> events_;
};

std::vector<Verdict> Judgement::run() {
  state_.suspicions.resize(ranks_);
  state_.ownPast.resize(ranks_, Recent(kPastWindows));
  state_.lastExcessMs.resize(ranks_, std::nan(""));
  if (comparable()) {
    ++state_.windows;
    state_.incomplete += window_.told < ranks_ ? 1 : 0;
    tellMissing();
    if (enoughTold()) {
      takeNoise();
      gateMs_ = gate();
      limit_ = std::log(options_.falseAlarmWindows * static_cast<double>(jobRanks_));
      judgeRanks();
      tellStragglers();
      judgeJob();
    }
  }
  state_.verdict = inForce();
  state_.abstained += ranks_ >= 2 && state_.verdict.kind == VerdictKind::kAbstain ? 1 : 0;
  return std::move(events_);
}

double Judgement::gate() const {
  const double noise = options_.noiseGate * noiseMs_;
  return input_.ownPastMs ? std::max({kPastAbsoluteGateMs, kPastRelativeGate * *input_.ownPastMs, noise})
                          : std::max({options_.absoluteGateMs, options_.relativeGate * window_.stepMs, noise});
}

// ---- Ranks ----

// Within a window, and from window to window, where what comes in bursts shows: the mean difference of two normal values is
// 2 / sqrt(pi) times their standard deviation. The median over windows passes over the one in which an excess begins.
void Judgement::takeNoise() {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ranks_; ++i) {
    const double now = window_.ranks[i].told ? window_.ranks[i].excessMs : std::nan("");
    const double difference = std::abs(now - std::exchange(state_.lastExcessMs[i], now));
    if (!std::isnan(difference)) {
      sum += difference;
      ++count;
    }
  }
  state_.withinMs.add(window_.noiseMs);
  if (count > 0) {
    const double deviation = std::sqrt(std::numbers::pi) / 2 * sum / static_cast<double>(count);
    state_.betweenMs.add(deviation);
    state_.betweenLatelyMs.add(deviation);
  }
  noiseMs_ = std::max({*state_.withinMs.median(), state_.betweenMs.median(kMinNoise).value_or(0),
                       state_.betweenLatelyMs.median(kMinNoise).value_or(0)});
}

bool Judgement::isAbove(std::size_t position) const {
  const RankComparison& rank = window_.ranks[position];
  switch (options_.rule) {
    case Rule::kSelfTime:
      return rank.excessMs > gateMs_;
    case Rule::kMovingAverage: {
      const auto past = state_.ownPast[position].median(kMinWindows);
      return past && rank.meanSelfMs > options_.multiplier * *past;
    }
    default:
      return rank.meanSelfMs > options_.multiplier * referenceMs_;
  }
}

Change Judgement::judge(std::size_t position) {
  Cusum& test = state_.suspicions[position].test;
  const bool above = isAbove(position);
  const Change change = options_.rule == Rule::kSelfTime ? test.add(window_.ranks[position].excessMs, gateMs_, noiseMs_,
                                                                    limit_, state_.suspicions[position].toldMs)
                                                         : test.add(above, limit_);
  state_.suspicions[position].add(window_.ranks[position], window_, gateMs_, above, input_.arrivals[position]);
  if (test.score == 0) {
    state_.ownPast[position].add(window_.ranks[position].meanSelfMs);
  }
  return change;
}

void Judgement::judgeRanks() {
  std::vector<double> own;
  for (const auto& rank : window_.ranks) {
    if (rank.told) {
      own.push_back(rank.meanSelfMs);
    }
  }
  referenceMs_ = reference(options_.rule, own);
  for (std::size_t i = 0; i < ranks_; ++i) {
    if (window_.ranks[i].told) {
      settle(i, judge(i));
    }
  }
}

void Judgement::settle(std::size_t position, Change change) {
  Suspicion& rank = state_.suspicions[position];
  if (change == Change::kOff) {
    over_.push_back(position);
    return;
  }
  const bool persists = static_cast<double>(rank.above) >= options_.persistence * static_cast<double>(rank.windows) &&
                        (options_.rule != Rule::kSelfTime || *rank.excessMs.median() > gateMs_);
  if (change != Change::kOn) {
    return;
  }
  if (!persists) {
    rank.end();  // late now and then; the test begins anew
    return;
  }
  const Evidence evidence = rank.evidence(input_.arrivals[position], jobRanks_);
  if (!contradicts(position, evidence)) {
    rank.test.on = true;
    rank.contradicted = false;
    begun_.push_back(position);
  } else if (!rank.contradicted) {
    rank.contradicted = true;
    tell(contradicted(position));
  }
}

// A rank that is late arrives last more often than by chance, or as often where it is late elsewhere in the step. Less often
// is a sign that what counts as its own time is not.
bool Judgement::contradicts(std::size_t position, const Evidence& evidence) const {
  if (!evidence.lastShare || evidence.operations < kMinOperations) {
    return false;
  }
  const auto last =
      static_cast<std::uint64_t>(std::lround(*evidence.lastShare * static_cast<double>(evidence.operations)));
  const double chance = state_.suspicions[position].lastChance(input_.arrivals[position], jobRanks_);
  const double atMost = 1 - binomialTail(last + 1, evidence.operations, chance);
  return atMost * static_cast<double>(jobRanks_) <= options_.significance;
}

std::vector<std::size_t> Judgement::named() const {
  std::vector<std::size_t> who;
  for (std::size_t i = 0; i < ranks_; ++i) {
    if (state_.suspicions[i].test.on) {
      who.push_back(i);
    }
  }
  std::stable_sort(who.begin(), who.end(), [this](std::size_t a, std::size_t b) {
    return state_.suspicions[a].excessMs.median() > state_.suspicions[b].excessMs.median();
  });
  return who;
}

void Judgement::tellCleared() {
  Verdict cleared = verdict(VerdictKind::kCleared, "");
  cleared.excessMs = state_.suspicions[over_.front()].toldMs;
  cleared.sinceStep = state_.suspicions[over_.front()].sinceStep;
  for (const std::size_t position : over_) {
    cleared.ranks.push_back(input_.ranks[position]);
    state_.suspicions[position].end();
  }
  cleared.share = shareOf(*cleared.excessMs);
  cleared.reason = clearedReason(cleared, input_.ownPastMs.has_value());
  state_.cleared = cleared;
  tell(std::move(cleared));
  if (!named().empty()) {
    state_.told = stragglerVerdict();  // what changes from now on is told of those that are left
  }
}

void Judgement::tellStragglers() {
  ++state_.windowsSinceTold;
  if (!over_.empty()) {
    tellCleared();
  }
  const auto who = named();
  if (who.empty()) {
    return;
  }
  const Verdict now = stragglerVerdict();
  if (begun_.empty() && !mustTellAgain(now)) {
    return;
  }
  for (const std::size_t position : who) {
    state_.suspicions[position].toldMs = *state_.suspicions[position].excessMs.median();
  }
  state_.told = now;
  state_.windowsSinceTold = 0;
  tell(now);
}

bool Judgement::mustTellAgain(const Verdict& now) const {
  const bool ending = state_.suspicions[named().front()].test.over > 0;
  if (ending || state_.windowsSinceTold < options_.changeWindows || now.ranks.front() != state_.told->ranks.front()) {
    return false;
  }
  const double ratio = *now.excessMs / *state_.told->excessMs;
  return ratio > options_.changeFactor || ratio < 1 / options_.changeFactor || now.cause != state_.told->cause;
}

Verdict Judgement::stragglerVerdict() const {
  const auto who = named();
  const Suspicion& worst = state_.suspicions[who.front()];
  Verdict straggler = verdict(VerdictKind::kStraggler, "");
  for (const std::size_t position : who) {
    straggler.ranks.push_back(input_.ranks[position]);
  }
  straggler.excessMs = worst.excessMs.median();
  straggler.share = shareOf(*straggler.excessMs);
  straggler.sinceStep = worst.sinceStep;
  straggler.confidence = worst.test.confidence(static_cast<double>(jobRanks_));
  straggler.evidence = worst.evidence(input_.arrivals[who.front()], jobRanks_);
  straggler.cause = causeOf(straggler.evidence, worst.meanExcessMs());
  const double compared =
      options_.rule == Rule::kMovingAverage ? state_.ownPast[who.front()].median().value_or(0) : referenceMs_;
  straggler.reason = stragglerReason(
      straggler, worst, {gateMs_, window_.stepMs, window_.ranks[who.front()].meanSelfMs, compared, input_.ownPastMs},
      options_);
  return straggler;
}

// ---- The job ----

void Judgement::tellMissing() {
  std::vector<int> missing;
  for (std::size_t i = 0; i < ranks_; ++i) {
    if (!window_.ranks[i].told) {
      missing.push_back(input_.ranks[i]);
    }
  }
  if (missing == state_.missing) {
    return;
  }
  if (missing.empty()) {
    Verdict back = verdict(VerdictKind::kCleared, backReason(state_.missing, window_.firstStep));
    back.ranks = state_.missing;
    tell(std::move(back));
  } else {
    tell(verdict(VerdictKind::kAbstain, missingReason(missing, window_.firstStep)));
  }
  state_.missing = std::move(missing);
}

void Judgement::judgeJob() {
  if (window_.told < ranks_) {
    return;
  }
  if (state_.pace.add(window_, limit_) && isAllOfTheJob()) {
    tellJob(state_.pace.slower(), jobWideVerdict(), paceOverReason(state_.pace, window_.lastStep()));
  }
  const bool blamed = !named().empty();
  if (ranks_ >= 2 && state_.imbalance.add(window_, blamed, limit_) && !blamed) {
    tellJob(state_.imbalance.uneven(), imbalanceVerdict(), imbalanceOverReason(window_.lastStep()));
  }
}

// What concerns the whole job has begun, or is over.
void Judgement::tellJob(bool begun, Verdict now, std::string overReason) {
  if (!begun) {
    now = verdict(VerdictKind::kCleared, std::move(overReason));
    state_.cleared = now;
  }
  tell(std::move(now));
}

Verdict Judgement::jobWideVerdict() const {
  return verdictOn(state_.pace, VerdictKind::kJobWide, jobWideReason(state_.pace));
}

Verdict Judgement::imbalanceVerdict() const {
  return verdictOn(state_.imbalance, VerdictKind::kImbalance, imbalanceReason(state_.imbalance));
}

// Of the pace or the imbalance of the whole job.
template <class Finding>
Verdict Judgement::verdictOn(const Finding& finding, VerdictKind kind, std::string reason) const {
  Verdict made = verdict(kind, std::move(reason));
  made.excessMs = finding.excessMs();
  made.share = shareOf(*made.excessMs);
  made.sinceStep = finding.sinceStep();
  made.confidence = finding.confidence();
  return made;
}

// What weighs most comes first: a name, what is not known, what concerns everybody, what is over.
Verdict Judgement::inForce() const {
  if (!comparable()) {
    return verdict(VerdictKind::kAbstain, "a rank alone has no peers to be compared with");
  }
  if (!named().empty()) {
    return stragglerVerdict();
  }
  if (!state_.missing.empty()) {
    return verdict(VerdictKind::kAbstain, missingReason(state_.missing, window_.firstStep));
  }
  if (state_.windows < kMinWindows) {
    return verdict(VerdictKind::kAbstain, tooFewReason(state_.windows));
  }
  const auto doubtful = std::find_if(state_.suspicions.begin(), state_.suspicions.end(),
                                     [](const auto& rank) { return rank.contradicted; });
  if (doubtful != state_.suspicions.end()) {
    const auto position = static_cast<std::size_t>(doubtful - state_.suspicions.begin());
    return contradicted(position);
  }
  if (state_.pace.slower() && isAllOfTheJob()) {
    return jobWideVerdict();
  }
  if (state_.imbalance.uneven()) {
    return imbalanceVerdict();
  }
  return state_.cleared ? *state_.cleared : nobody();
}

Verdict Judgement::contradicted(std::size_t position) const {
  const Suspicion& rank = state_.suspicions[position];
  const Evidence evidence = rank.evidence(input_.arrivals[position], jobRanks_);
  Verdict doubt = verdict(VerdictKind::kAbstain,
                          contradictedReason(input_.ranks[position], rank.excessMs.median().value_or(0), evidence));
  doubt.evidence = evidence;
  return doubt;
}

Verdict Judgement::verdict(VerdictKind kind, std::string reason) const {
  Verdict verdict;
  verdict.kind = kind;
  verdict.rule = toString(options_.rule);
  verdict.step = window_.lastStep();
  verdict.reason = std::move(reason);
  return verdict;
}

Verdict Judgement::nobody() const {
  std::size_t worst = 0;
  for (std::size_t i = 1; i < ranks_; ++i) {
    worst = state_.suspicions[i].excessMs.median() > state_.suspicions[worst].excessMs.median() ? i : worst;
  }
  const double excess = state_.suspicions[worst].excessMs.median().value_or(0);
  Verdict none =
      verdict(VerdictKind::kNone, nobodyReason(input_.ranks[worst], excess, gateMs_, input_.ownPastMs.has_value()));
  none.excessMs = excess;
  none.share = shareOf(excess);
  return none;
}

}  // namespace

Decision decide(DetectorState last, const DetectorInput& input, const DetectorOptions& options) {
  Decision decision{std::move(last), {}};
  decision.events = Judgement(decision.state, input, options).run();
  return decision;
}

}  // namespace straggler
