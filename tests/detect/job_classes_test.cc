// Jobs whose ranks do not all do the same: who is compared with whom, from the ranks' frames to the verdict.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "backend/detect/job_model.h"
#include "tests/fakes/pipelines.h"

namespace straggler {
namespace {

JobModel modelOf(const std::vector<int>& ranks, const std::vector<Frame>& frames) {
  JobModel model(ranks, 10);
  for (const auto& frame : frames) {
    model.apply(frame);
  }
  return model;
}
JobModel modelOf(const SyntheticPipeline& job) { return modelOf(job.members(), job.frames()); }

std::vector<int> namedIn(const JobModel& model) {
  std::vector<int> named;
  for (const auto& verdict : model.history()) {
    if (verdict.kind == VerdictKind::kStraggler) {
      named.insert(named.end(), verdict.ranks.begin(), verdict.ranks.end());
    }
  }
  return named;
}

bool wasTold(const JobModel& model, VerdictKind kind) {
  return std::any_of(model.history().begin(), model.history().end(), [kind](const auto& v) { return v.kind == kind; });
}

// Stages of 20, 30, 40, 50 ms, with noise of some 1 %.
double uneven(const SyntheticPipeline& job, int rank, std::int64_t step) {
  return 20 + 10 * (rank % job.stages) + 0.3 * noise(rank, step);
}

TEST(JobClasses, stagesOfDifferentLengthNameNobody) {
  for (const int replicas : {1, 2, 3}) {
    SyntheticPipeline job{.replicas = replicas};
    job.selfMs = [&](int rank, std::int64_t step) { return uneven(job, rank, step); };
    const JobModel model = modelOf(job);
    SCOPED_TRACE(std::to_string(replicas) + " replicas");
    EXPECT_EQ(model.classes().size(), 4U);
    EXPECT_TRUE(namedIn(model).empty());
    EXPECT_FALSE(wasTold(model, VerdictKind::kJobWide));
    EXPECT_NE(model.verdict().kind, VerdictKind::kAbstain) << model.verdict().reason;
  }
}

TEST(JobClasses, lateReplicaOfAStageIsNamedBesideItsPeersWhicheverStageItIs) {
  for (int culprit = 0; culprit < 8; ++culprit) {
    SyntheticPipeline job{.replicas = 2};
    job.selfMs = [&](int rank, std::int64_t step) { return uneven(job, rank, step) + (rank == culprit ? 6 : 0); };
    const JobModel model = modelOf(job);
    SCOPED_TRACE(culprit);
    EXPECT_EQ(model.verdict().kind, VerdictKind::kStraggler);
    EXPECT_EQ(model.verdict().ranks, std::vector<int>{culprit});
    EXPECT_NEAR(*model.verdict().excessMs, 6, 0.5);
  }
}

TEST(JobClasses, stageWithoutReplicasIsNamedWhenItBecomesSlowerThanItWas) {
  for (const int stages : {2, 4}) {
    for (int culprit = 0; culprit < stages; ++culprit) {
      SyntheticPipeline job{.stages = stages};
      job.selfMs = [&](int rank, std::int64_t step) {
        return uneven(job, rank, step) + (rank == culprit && step >= 200 ? 12 : 0);
      };
      const JobModel model = modelOf(job);
      SCOPED_TRACE(std::to_string(culprit) + " of " + std::to_string(stages));
      EXPECT_EQ(model.verdict().kind, VerdictKind::kStraggler);
      EXPECT_EQ(model.verdict().ranks, std::vector<int>{culprit});
      EXPECT_NEAR(*model.verdict().excessMs, 12, 1);
      EXPECT_EQ(model.verdict().sinceStep, 200);
      EXPECT_NE(model.verdict().reason.find("above its own past of "), std::string::npos) << model.verdict().reason;
      EXPECT_EQ(namedIn(model), std::vector<int>{culprit}) << "no victim";
    }
  }
}

TEST(JobClasses, stageWithoutReplicasIsClearedWhenItIsAsBefore) {
  SyntheticPipeline job{.steps = 600};
  job.selfMs = [&](int rank, std::int64_t step) {
    return uneven(job, rank, step) + (rank == 2 && step >= 200 && step < 400 ? 12 : 0);
  };
  const JobModel model = modelOf(job);
  EXPECT_EQ(namedIn(model), std::vector<int>{2});
  EXPECT_TRUE(std::any_of(model.history().begin(), model.history().end(), [](const Verdict& verdict) {
    return verdict.kind == VerdictKind::kCleared && verdict.ranks == std::vector<int>{2} &&
           verdict.reason.find("self time is as before again") == 0;
  }));
  EXPECT_EQ(model.verdict().cause, "stage_imbalance") << "which there was before";
}

TEST(JobClasses, whatSlowsEveryStageNamesNoneOfThem) {
  // By the same time, and by the same part.
  for (const bool stretched : {false, true}) {
    for (const int stages : {2, 4}) {
      SyntheticPipeline job{.stages = stages};
      job.selfMs = [&](int rank, std::int64_t step) {
        const double self = uneven(job, rank, step);
        return step < 200 ? self : stretched ? 1.5 * self : self + 12;
      };
      const JobModel model = modelOf(job);
      SCOPED_TRACE(std::to_string(stages) + (stretched ? " stretched" : " longer"));
      EXPECT_TRUE(namedIn(model).empty());
      EXPECT_EQ(model.verdict().kind, VerdictKind::kJobWide);
      EXPECT_EQ(model.verdict().sinceStep, 200);
    }
  }
}

TEST(JobClasses, stagesThatCountInPartsOfAStepAreComparedAndNobodyIsMissing) {
  SyntheticPipeline job{.steps = 600};
  job.parts = [](int stage) { return stage == 0 ? 1 : 8; };
  job.selfMs = [&](int rank, std::int64_t step) {
    return uneven(job, rank, step) + (rank == 3 && step >= 200 ? 20 : 0);
  };
  const JobModel model = modelOf(job);
  EXPECT_FALSE(wasTold(model, VerdictKind::kAbstain));
  EXPECT_EQ(model.verdict().ranks, std::vector<int>{3});
  EXPECT_EQ(model.windowsIncomplete(), 0U);
  EXPECT_NEAR(*model.verdict().share, 20.0 / 71, 0.03) << "the share does not depend on how steps are counted";
}

TEST(JobClasses, stageThatLimitsThePipelineIsToldAndNobodyIsBlamed) {
  for (const int replicas : {1, 2}) {
    SyntheticPipeline job{.replicas = replicas};
    job.parts = [](int stage) { return stage == 1 ? 8 : 1; };
    job.selfMs = [&](int rank, std::int64_t step) { return uneven(job, rank, step); };
    const JobModel model = modelOf(job);
    const Verdict& verdict = model.verdict();
    SCOPED_TRACE(replicas);
    EXPECT_EQ(verdict.kind, VerdictKind::kImbalance);
    EXPECT_EQ(verdict.cause, "stage_imbalance");
    EXPECT_TRUE(verdict.ranks.empty());
    EXPECT_NEAR(*verdict.excessMs, 15, 0.5) << "50 ms, 35 in the mean";
    EXPECT_NEAR(*verdict.share, 15.0 / 51, 0.02);
    const std::string stage = replicas == 1 ? "the stage of rank 3 works" : "the stage of rank 3, 7 works";
    EXPECT_NE(verdict.reason.find(stage), std::string::npos) << verdict.reason;
  }
}

TEST(JobClasses, evenStagesAreNotCalledUneven) {
  SyntheticPipeline job;
  job.selfMs = [](int rank, std::int64_t step) { return 25 + 0.3 * noise(rank, step); };
  EXPECT_TRUE(modelOf(job).history().empty());
}

TEST(JobClasses, ranksOfDifferentProgramsThatSendNothingAreNoPipeline) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return (rank < 2 ? 25 : 50) + 0.3 * noise(rank, step); };
  JobModel model(job.members(), 10);
  for (int rank = 0; rank < job.ranks; ++rank) {
    model.apply(job.hello(rank));
    const OpKind kind = rank < 2 ? OpKind::kAllReduce : OpKind::kAllGather;
    model.apply({rank, {RankProgram{{{job.group().id(), kind}}}}});
  }
  for (const auto& frame : job.frames()) {
    model.apply(frame);
  }
  EXPECT_EQ(model.classes().size(), 2U);
  EXPECT_TRUE(model.history().empty());
}

TEST(JobClasses, tooShortAPastAbstains) {
  SyntheticPipeline job{.steps = 50};
  const Verdict verdict = modelOf(job).verdict();
  EXPECT_EQ(verdict.kind, VerdictKind::kAbstain);
  EXPECT_NE(verdict.reason.find("no other rank does the same work as rank 0"), std::string::npos) << verdict.reason;
}

TEST(JobClasses, dataParallelJobIsJudgedAsIfNothingWereKnownOfItsProgram) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) {
    return 25 + 0.5 * noise(rank, step) + (rank == 2 && step > 100 && step < 200 ? 8 : 0);
  };
  const JobModel without = modelOf(job.members(), job.frames());
  JobModel with(job.members(), 10);
  for (int rank = 0; rank < job.ranks; ++rank) {
    with.apply(job.hello(rank));
    with.apply({rank, {RankProgram{{{job.group().id(), OpKind::kAllReduce}}}}});
  }
  for (const auto& frame : job.frames()) {
    with.apply(frame);
  }
  EXPECT_EQ(with.classes().size(), 1U);
  EXPECT_EQ(with.history(), without.history());
  EXPECT_EQ(with.verdict(), without.verdict());
}

TEST(JobClasses, rankThatDoesSomethingElseForAMomentStaysAPeer) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return 25 + 0.5 * noise(rank, step) + (rank == 2 ? 8 : 0); };
  JobModel model(job.members(), 10);
  const RankProgram usual{{{job.group().id(), OpKind::kAllReduce}}};
  const RankProgram other{{{job.group().id(), OpKind::kAllReduce}, {job.group().id(), OpKind::kBroadcast}}};
  std::size_t frames = 0;
  for (int rank = 0; rank < job.ranks; ++rank) {
    model.apply(job.hello(rank));
    model.apply({rank, {usual}});
  }
  for (const auto& frame : job.frames()) {
    model.apply(frame);
    if (++frames % 40 == 0) {
      model.apply({1, {other}});
    } else if (frames % 40 == 8) {
      model.apply({1, {usual}});
    }
    ASSERT_EQ(model.classes().size(), 1U);
  }
  EXPECT_EQ(model.verdict().ranks, std::vector<int>{2});
}

TEST(JobClasses, classesThatChangeForGoodAreComparedAnew) {
  SyntheticPipeline job{.replicas = 2};
  job.selfMs = [&](int rank, std::int64_t step) { return uneven(job, rank, step); };
  JobModel model = modelOf(job);
  // The stages are merged: all ranks reduce in the world, and send no more.
  for (int rank = 0; rank < job.size(); ++rank) {
    model.apply({rank, {RankProgram{{{SyntheticPipeline::world(), OpKind::kAllReduce}}}}});
  }
  SyntheticJob after{.ranks = 8, .steps = 800};
  after.selfMs = [](int rank, std::int64_t step) { return 25 + 0.5 * noise(rank, step) + (rank == 5 ? 8 : 0); };
  for (std::int64_t first = 400; first < after.steps; first += 10) {
    for (int rank = 0; rank < after.ranks; ++rank) {
      model.apply(after.stepWindow(rank, first));
    }
  }
  EXPECT_EQ(model.classes().size(), 1U);
  EXPECT_EQ(model.verdict().ranks, std::vector<int>{5});
}

TEST(JobClasses, rankThatFallsSilentIsMissingInItsClassAndTheOthersAreCompared) {
  SyntheticPipeline job{.replicas = 3};
  job.selfMs = [&](int rank, std::int64_t step) { return uneven(job, rank, step); };
  JobModel model(job.members(), 10);
  for (const auto& frame : job.frames()) {
    const auto* window = std::get_if<StepWindow>(&frame.messages.front());
    if (frame.rank != 5 || window == nullptr || window->firstStep < 200) {
      model.apply(frame);
    }
  }
  EXPECT_EQ(model.verdict().kind, VerdictKind::kAbstain);
  EXPECT_NE(model.verdict().reason.find("nothing was heard of rank 5"), std::string::npos) << model.verdict().reason;
  EXPECT_TRUE(namedIn(model).empty());
}

TEST(JobClasses, twoStagesWithACulpritEachAreNamedTogetherWorstFirst) {
  SyntheticPipeline job{.replicas = 2};
  job.selfMs = [&](int rank, std::int64_t step) {
    return uneven(job, rank, step) + (rank == 1 ? 5 : rank == 6 ? 9 : 0);
  };
  const JobModel model = modelOf(job);
  EXPECT_EQ(model.verdict().ranks, (std::vector<int>{6, 1}));
  EXPECT_NEAR(*model.verdict().excessMs, 9, 0.5);
}

}  // namespace
}  // namespace straggler
