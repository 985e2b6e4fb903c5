// JobModel: everything that the ranks of a session have told, brought together and kept in bounded memory. Frames in,
// numbers out; no clock, no threads. The live collector and a replay of the records feed it alike, so both report alike.
//
// A rank that tells nothing stays missing: no number is made up for it, and operations that it should be part of are not
// compared.
//
// Ranks are compared within their classes (peer_classes.h). Until all have told what they do, and in a job whose ranks all
// do the same, that is one class of all. Classes that would change are left as they are until the change has lasted: ranks
// tell one after the other that they do something else.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/detect/arrival_table.h"
#include "backend/detect/class_model.h"
#include "backend/detect/clocks.h"
#include "backend/detect/detector.h"
#include "backend/detect/pace.h"
#include "backend/detect/statistics.h"
#include "backend/exchange/messages.h"

namespace straggler {

// What is known of one rank.
struct RankModel {
  int rank = 0;  // global
  std::optional<RankHello> hello;
  RankCounters counters;
  std::optional<MitigationSummary> mitigation;  // the last that it told
  std::size_t classIndex = 0;                   // its class of peers
  std::size_t place = 0;                        // in that
  Mean selfMs;                                  // over its steps
  Mean durationMs;                              // the same
  ThinnedSeries latenessMs;                     // over the operations compared
  std::uint64_t lastCertain = 0;                // of them: the bounds of the arrivals leave no doubt who was last
  std::uint64_t timesLast = 0;                  // of those
  double lastMoreLikely = 0;                    // ArrivalCounts::moreLikely of those
  double lostMs = 0;  // by how much shorter the steps compared would have been without this rank
};

// What is known of one kind of operation.
struct KindModel {
  ThinnedSeries skewMs;
  ThinnedSeries boundMs;
};

class JobModel {
 public:
  // The first steps of a job and the first operations of a group are set-up (lazy initialisation, DDP's constructor,
  // its rebuilding of buckets): they are not compared.
  static constexpr std::int64_t kWarmUpSteps = 5;
  static constexpr std::uint64_t kWarmUpOperations = 10;

  static constexpr std::size_t kMaxHistory = 100;  // verdicts that are kept
  static constexpr std::size_t kSettled = 3;       // windows of each rank before other classes count

  // `ranks`: global, of all members of the session, in ascending order.
  JobModel(std::vector<int> ranks, int stepsPerWindow, DetectorOptions options = {});

  // A frame from a rank that is not a member is ignored and counted.
  void apply(const Frame& frame);

  // The verdict in force.
  const Verdict& verdict() const { return verdict_; }
  // The verdicts that started, changed or cleared, oldest first.
  const std::deque<Verdict>& history() const { return history_; }
  // Those of them that were not taken yet.
  std::vector<Verdict> takeEvents() { return std::exchange(events_, {}); }
  // What the rule in force can see in this job, a sentence.
  std::string ruleText() const;

  const std::vector<RankModel>& ranks() const { return ranks_; }
  const std::array<KindModel, kOpKinds>& kinds() const { return kinds_; }
  const std::map<GroupId, GroupInfo>& groups() const { return groups_; }
  StepsFoundBy foundBy() const { return foundBy_; }
  const Clocks& clocks() const { return clocks_; }
  const std::vector<ClassModel>& classes() const { return classes_; }
  // Of several classes, those of the first.
  std::uint64_t stepsCompared() const { return stepsCompared_; }
  double comparedMs() const { return comparedMs_; }  // length of the steps compared
  std::uint64_t windowsCompared() const;
  std::uint64_t windowsIncomplete() const;
  std::uint64_t windowsAbstained() const;
  std::uint64_t windowsLate() const;
  std::uint64_t windowsPassedOver() const;
  std::uint64_t operationsGivenUp() const { return arrivals_.givenUp(); }
  std::uint64_t strangers() const { return strangers_; }
  std::uint32_t largestStride() const { return largestStride_; }
  std::uint32_t largestSampling() const { return largestSampling_; }
  std::size_t ranksHeard() const;
  std::size_t ranksFinal() const;

 private:
  void apply(RankModel& rank, const RankHello& hello);
  void apply(RankModel& rank, const GroupInfo& group);
  void apply(RankModel& rank, const StepWindow& window);
  void apply(RankModel& rank, const ArrivalSamples& samples);
  void apply(RankModel& rank, const RankCounters& counters);
  void apply(RankModel& rank, const MitigationSummary& summary);
  void apply(RankModel& rank, const ClockReading& reading);
  void apply(RankModel& rank, const RankProgram& program);
  void regroup();
  void setClasses(const std::vector<PeerClass>& classes);
  void judge(std::size_t classIndex, const WindowRow& row);
  void judgeJob();
  void judgeStages();
  Verdict stageVerdict() const;
  Verdict jobWideVerdict() const;
  void judgeTransfers(ClassModel& ofClass);
  Verdict networkVerdict(const ClassModel& ofClass) const;
  Verdict verdictOf(VerdictKind kind, std::int64_t step, std::string reason) const;
  void tell(Verdict event);
  Verdict inForce() const;
  void compareSteps(const ClassModel& ofClass, const WindowRow& row);
  void compare(const OpKey& key, const std::vector<RankSample>& samples);
  void addTransfer(const ArrivalSample& last, const std::vector<RankSample>& samples);
  std::optional<std::size_t> positionOf(int rank) const;

  std::vector<RankModel> ranks_;  // ascending by rank
  std::map<GroupId, GroupInfo> groups_;
  std::size_t groupMembers_ = 0;  // of all of them
  std::array<KindModel, kOpKinds> kinds_;
  Clocks clocks_;
  bool fillsSlots_ = false;  // operations may complete before their last rank arrives
  ArrivalTable arrivals_;
  DetectorOptions options_;
  int stepsPerWindow_;
  std::vector<ClassModel> classes_;
  std::vector<std::optional<RankProgram>> programs_;  // by position
  bool programsChanged_ = false;
  std::optional<std::vector<PeerClass>> proposed_;  // classes that will count if they last
  std::size_t windowsSinceProposed_ = 0;            // of all ranks
  bool allSlower_ = false;                          // of several classes, nearly all
  bool pipeline_ = false;                           // whose stages are the classes
  Stages stages_;
  Verdict verdict_;
  std::deque<Verdict> history_;
  std::vector<Verdict> events_;
  StepsFoundBy foundBy_ = StepsFoundBy::kNone;
  std::uint64_t windowsLateBefore_ = 0;  // of classes that are no more
  std::uint64_t windowsPassedOverBefore_ = 0;
  std::uint64_t stepsCompared_ = 0;
  double comparedMs_ = 0;
  std::uint64_t strangers_ = 0;
  std::uint32_t largestStride_ = 1;
  std::uint32_t largestSampling_ = 1;
};

}  // namespace straggler
