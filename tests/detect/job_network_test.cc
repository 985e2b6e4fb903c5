// A slow link, from the ranks' frames to the verdict: it is nobody's own time, and nobody is named for it.
#include <algorithm>

#include <gtest/gtest.h>

#include "backend/detect/job_model.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

// A data-parallel job of four ranks and two buckets a step, whose link is slow in some steps. Each rank may have a clock of
// its own.
struct LinkJob {
  SyntheticJob job = {.steps = 400};
  double healthyMs = 4;  // transfer of a bucket
  double slowMs = 24;
  std::int64_t slowFrom = 200;
  std::int64_t slowTo = 1'000'000;
  bool ownClocks = false;
  std::uint64_t sequence = 0;

  double transferMs(std::int64_t step) const { return step >= slowFrom && step < slowTo ? slowMs : healthyMs; }

  void tell(JobModel& model) {
    for (int rank = 0; rank < job.ranks; ++rank) {
      Frame hello = job.hello(rank);
      std::get<RankHello>(hello.messages.front()).clockDomain = ownClocks ? "clock-" + std::to_string(rank) : "clock";
      model.apply(hello);
    }
    for (std::int64_t first = 0; first < job.steps; first += job.window) {
      job.transferMs = 2 * transferMs(first);
      for (int rank = 0; rank < job.ranks; ++rank) {
        Frame frame = job.stepWindow(rank, first);
        frame.messages.insert(frame.messages.begin(), arrivals(rank, first));
        model.apply(frame);
      }
      sequence += 20;
    }
  }

  // The ranks arrive as late as their self times are long, and complete when the data is there.
  ArrivalSamples arrivals(int rank, std::int64_t first) const {
    ArrivalSamples samples{1, {}};
    const double offset = ownClocks ? 1e6 * rank : 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const double begin = 100.0 * static_cast<double>(first) + 50 * static_cast<double>(i) + offset;
      const std::int64_t step = first + static_cast<std::int64_t>(i / 2);
      samples.operations.push_back({{job.group().id(), sequence + i, OpKind::kAllReduce},
                                    at(begin + job.selfMs(rank, step)),
                                    at(begin + job.stepMs(step) - job.transferMs + transferMs(first) +
                                       0.1 * noise(0, first + static_cast<int>(i))),
                                    false,
                                    21});
    }
    return samples;
  }
};

JobModel modelOf(LinkJob link) {
  JobModel model(link.job.members(), 10);
  link.tell(model);
  return model;
}

std::vector<VerdictKind> kindsTold(const JobModel& model) {
  std::vector<VerdictKind> kinds;
  for (const auto& verdict : model.history()) {
    kinds.push_back(verdict.kind);
  }
  return kinds;
}

double noisy(int rank, std::int64_t step) { return 25 + 0.3 * noise(rank, step); }

TEST(JobNetwork, slowLinkIsToldAndNamesNobody) {
  for (const bool ownClocks : {false, true}) {
    LinkJob link{.ownClocks = ownClocks};
    link.job.selfMs = noisy;
    const JobModel model = modelOf(link);
    SCOPED_TRACE(ownClocks ? "a clock each" : "one clock");
    EXPECT_EQ(kindsTold(model), std::vector<VerdictKind>{VerdictKind::kNetwork});
    const Verdict& verdict = model.verdict();
    EXPECT_EQ(verdict.kind, VerdictKind::kNetwork);
    EXPECT_TRUE(verdict.ranks.empty());
    EXPECT_EQ(verdict.cause, "network");
    EXPECT_EQ(verdict.group, "world");
    EXPECT_EQ(verdict.sinceStep, 200);
    EXPECT_NEAR(*verdict.excessMs, 40, 1);
    EXPECT_NEAR(*verdict.share, 40.0 / 73, 0.03);
    EXPECT_NE(verdict.reason.find("in group 'world' (rank 0-3)"), std::string::npos) << verdict.reason;
  }
}

TEST(JobNetwork, healthyLinkIsNotTold) {
  LinkJob link{.slowFrom = 1'000'000};
  link.job.selfMs = noisy;
  EXPECT_TRUE(kindsTold(modelOf(link)).empty());
}

TEST(JobNetwork, linkThatIsFastAgainIsCleared) {
  LinkJob link{.slowTo = 300};
  link.job.selfMs = noisy;
  const JobModel model = modelOf(link);
  EXPECT_EQ(kindsTold(model), (std::vector<VerdictKind>{VerdictKind::kNetwork, VerdictKind::kCleared}));
}

TEST(JobNetwork, stragglerIsNamedAndNotTheLink) {
  LinkJob link{.slowFrom = 1'000'000};
  link.job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 2 && step >= 200 ? 12 : 0); };
  const JobModel model = modelOf(link);
  EXPECT_EQ(kindsTold(model), std::vector<VerdictKind>{VerdictKind::kStraggler});
  EXPECT_EQ(model.verdict().ranks, std::vector<int>{2});
}

TEST(JobNetwork, stragglerBesideASlowLinkIsNamedAlone) {
  LinkJob link;
  link.job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (rank == 2 && step >= 100 ? 12 : 0); };
  const JobModel model = modelOf(link);
  EXPECT_EQ(model.verdict().kind, VerdictKind::kStraggler);
  EXPECT_EQ(model.verdict().ranks, std::vector<int>{2});
}

TEST(JobNetwork, everybodySlowIsNotTheLink) {
  LinkJob link{.slowFrom = 1'000'000};
  link.job.selfMs = [](int rank, std::int64_t step) { return noisy(rank, step) + (step >= 200 ? 12 : 0); };
  EXPECT_EQ(kindsTold(modelOf(link)), std::vector<VerdictKind>{VerdictKind::kJobWide});
}

TEST(JobNetwork, operationsWithoutACompletionAreNotMeasured) {
  LinkJob link;
  link.job.selfMs = noisy;
  JobModel model(link.job.members(), 10);
  LinkJob told = link;
  for (int rank = 0; rank < link.job.ranks; ++rank) {
    model.apply(link.job.hello(rank));
  }
  for (std::int64_t first = 0; first < link.job.steps; first += 10) {
    told.job.transferMs = 2 * told.transferMs(first);
    for (int rank = 0; rank < link.job.ranks; ++rank) {
      Frame frame = told.job.stepWindow(rank, first);
      ArrivalSamples samples = told.arrivals(rank, first);
      if (rank == 1) {
        for (auto& sample : samples.operations) {
          sample.completed.reset();
        }
      }
      frame.messages.insert(frame.messages.begin(), samples);
      model.apply(frame);
    }
    told.sequence += 20;
  }
  EXPECT_TRUE(kindsTold(model).empty()) << "it is not known, so nothing is said";
}

}  // namespace
}  // namespace straggler
