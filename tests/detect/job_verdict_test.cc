// Whole jobs, from their ranks' frames to the verdict: who is named, and above all who is not.
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "backend/detect/job_model.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

Verdict verdictOn(const SyntheticJob& job) {
  JobModel model(job.members(), static_cast<int>(job.window));
  for (const auto& frame : job.frames()) {
    model.apply(frame);
  }
  return model.verdict();
}

// Self time of about 25 ms with noise of some 2 %.
double noisy(int rank, std::int64_t step) { return 25 + 0.5 * noise(rank, step); }

TEST(JobVerdict, culpritIsNamedWhicheverItIsAndNobodyElse) {
  for (const int ranks : {2, 4, 8}) {
    for (const int culprit : {0, ranks / 2, ranks - 1}) {
      SyntheticJob job{.ranks = ranks};
      job.selfMs = [=](int rank, std::int64_t step) { return noisy(rank, step) + (rank == culprit ? 8 : 0); };
      const Verdict verdict = verdictOn(job);
      SCOPED_TRACE(std::to_string(culprit) + " of " + std::to_string(ranks));
      EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
      EXPECT_EQ(verdict.ranks, std::vector<int>{culprit});
      EXPECT_NEAR(*verdict.excessMs, 8, 0.5);
      EXPECT_NEAR(*verdict.share, 8.0 / 34, 0.03);
      EXPECT_EQ(verdict.sinceStep, JobModel::kWarmUpSteps);
    }
  }
}

TEST(JobVerdict, noiseNamesNobody) {
  for (const int ranks : {2, 4, 8, 64}) {
    SyntheticJob job{.ranks = ranks};
    job.selfMs = noisy;
    EXPECT_EQ(verdictOn(job).kind, VerdictKind::kNone) << ranks << " ranks";
  }
}

TEST(JobVerdict, rankThatHasADutyOnceInAWhileIsNotNamed) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 0 && step % 20 == 0 ? 300 : 0); };
  EXPECT_EQ(verdictOn(job).kind, VerdictKind::kNone);
}

TEST(JobVerdict, culpritIsNamedBesideARankThatHasADuty) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) {
    return noisy(rank, step) + (rank == 0 && step % 20 == 0 ? 300 : 0) + (rank == 2 ? 8 : 0);
  };
  EXPECT_EQ(verdictOn(job).ranks, std::vector<int>{2});
}

TEST(JobVerdict, latenessThatRotatesIsAnImbalanceAndNamesNobody) {
  for (const int ranks : {2, 4, 8}) {
    SyntheticJob job{.ranks = ranks};
    job.selfMs = [=](int rank, std::int64_t step) { return noisy(rank, step) + (step % ranks == rank ? 8 : 0); };
    const Verdict verdict = verdictOn(job);
    EXPECT_EQ(verdict.kind, VerdictKind::kImbalance) << ranks << " ranks";
    EXPECT_TRUE(verdict.ranks.empty());
    EXPECT_NEAR(*verdict.excessMs, 8, 1);
  }
}

TEST(JobVerdict, collectorPausesOnAllRanksNameNobody) {
  SyntheticJob job{.steps = 3000};
  job.selfMs = [](int rank, std::int64_t step) {
    const bool pauses = static_cast<std::uint64_t>(step * 2654435761 + rank * 40503) % 100 == 0;
    return noisy(rank, step) + (pauses ? 200 : 0);
  };
  EXPECT_EQ(verdictOn(job).kind, VerdictKind::kNone);
}

TEST(JobVerdict, singleSpikeNamesNobody) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 1 && step == 290 ? 2000 : 0); };
  EXPECT_EQ(verdictOn(job).kind, VerdictKind::kNone);
}

TEST(JobVerdict, everybodySlowIsJobWideAndNamesNobody) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (step >= 150 ? 8 : 0); };
  const Verdict verdict = verdictOn(job);
  EXPECT_EQ(verdict.kind, VerdictKind::kJobWide);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_EQ(verdict.sinceStep, 150);
}

TEST(JobVerdict, warmUpThatOnlyOneRankHasNamesNobody) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 3 && step < 5 ? 900 : 0); };
  EXPECT_EQ(verdictOn(job).kind, VerdictKind::kNone);
}

TEST(JobVerdict, lateStartTellsSinceWhichStep) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 2 && step >= 155 ? 8 : 0); };
  const Verdict verdict = verdictOn(job);
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_EQ(verdict.sinceStep, 155);
}

TEST(JobVerdict, stepIsRightWithinAWindowToo) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return 25 + (rank == 2 && step >= 153 ? 8 : 0); };
  EXPECT_EQ(verdictOn(job).sinceStep, 153);
}

TEST(JobVerdict, longJobTellsSinceWhichStep) {
  SyntheticJob job{.steps = 20'000};
  job.selfMs = [](int rank, std::int64_t step) { return 25 + (rank == 2 && step >= 12'000 ? 8 : 0); };
  const Verdict verdict = verdictOn(job);
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_EQ(verdict.sinceStep, 12'000);
}

TEST(JobVerdict, stepNumbersStayRightWhereRanksTellOfSomeWindowsOnly) {
  SyntheticJob job{.steps = 4000};
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 1 && step >= 2000 ? 8 : 0); };
  JobModel model(job.members(), 10);
  for (std::int64_t first = 0; first < job.steps; first += 40) {
    for (int rank = 0; rank < job.ranks; ++rank) {
      Frame frame = job.stepWindow(rank, first);
      std::get<StepWindow>(frame.messages.front()).stride = 4;
      model.apply(frame);
    }
  }
  const Verdict verdict = model.verdict();
  EXPECT_EQ(verdict.ranks, std::vector<int>{1});
  EXPECT_NEAR(static_cast<double>(*verdict.sinceStep), 2000, 40);
  EXPECT_EQ(model.largestStride(), 4U);
}

TEST(JobVerdict, victimsOfTheCulpritAreNotNamed) {
  // Self time is the same for all but the culprit, however long the others wait: their steps are as long as its own.
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 0 ? 100 : 0); };
  EXPECT_EQ(verdictOn(job).ranks, std::vector<int>{0});
}

TEST(JobVerdict, tooShortAJobAbstains) {
  SyntheticJob job{.steps = 20};
  job.selfMs = [](int rank, std::int64_t) { return rank == 2 ? 33.0 : 25.0; };
  EXPECT_EQ(verdictOn(job).kind, VerdictKind::kAbstain);
}

// ---- Causes, with what the operating system counted ----

// Rank 2 of four is 8 ms late, as `evidence` says of each of its windows; its peers have half a millisecond of input.
Verdict verdictWith(void (*evidence)(StepWindow&)) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 2 ? 8 : 0); };
  JobModel model(job.members(), static_cast<int>(job.window));
  for (auto frame : job.frames()) {
    for (auto& message : frame.messages) {
      if (auto* window = std::get_if<StepWindow>(&message)) {
        window->inputUs = 5'000;
        window->os[OsCounter::kBlockIo] = 0;
        window->os[OsCounter::kReadBytes] = 2'000'000;
        if (frame.rank == 2) {
          evidence(*window);
        }
      }
    }
    model.apply(frame);
  }
  return model.verdict();
}

TEST(JobVerdict, delayHalfInLoadingAndHalfBlockedElsewhereIsOfTheRightRankAndHasNoCause) {
  const Verdict verdict = verdictWith([](StepWindow& window) {
    window.inputUs = 45'000;
    window.os[OsCounter::kBlockIo] = 40'000;
  });
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_EQ(verdict.cause, "not_attributed");
  EXPECT_NE(verdict.reason.find("its disk: blocked in I/O for 4.0 ms a step, peers 0.0"), std::string::npos)
      << verdict.reason;
}

TEST(JobVerdict, slowDiskIsNamedWithWhatItCostsBesideThePeers) {
  const Verdict verdict = verdictWith([](StepWindow& window) {
    window.inputUs = 85'000;
    window.os[OsCounter::kBlockIo] = window.firstStep % 20 == 0 ? 0 : 160'000;  // as ticks and read-ahead have it
  });
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_EQ(verdict.cause, "host_input");
  EXPECT_NEAR(*verdict.evidence.os[OsCounter::kBlockIo], 8, 1e-3) << "the mean, not the median";
  EXPECT_EQ(verdict.evidence.osPeers[OsCounter::kBlockIo], 0);
  EXPECT_EQ(verdict.evidence.os[OsCounter::kSentBytes], std::nullopt);
  EXPECT_NE(verdict.reason.find("its disk: blocked in I/O for 8.0 ms a step, peers 0.0; 0.2 MB read a step, peers 0.2"),
            std::string::npos)
      << verdict.reason;
}

TEST(JobVerdict, whatTheSystemCountedOfAllRanksAlikeIsNotInTheSentence) {
  const Verdict verdict = verdictWith([](StepWindow& window) { window.inputUs = 85'000; });
  EXPECT_EQ(verdict.cause, "host_input");
  EXPECT_EQ(verdict.reason.find("its disk"), std::string::npos) << verdict.reason;
  EXPECT_EQ(verdict.evidence.os[OsCounter::kReadBytes], 200'000) << "it is in the evidence all the same";
}

}  // namespace
}  // namespace straggler
