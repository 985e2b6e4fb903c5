#include "backend/observe/step_finder.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

std::uint64_t bytesOf(char letter) { return 1024U * static_cast<std::uint64_t>(letter - 'a' + 1); }

// Feeds operations one after the other and keeps the steps that end.
class Feeder {
 public:
  explicit Feeder(double speed = 1) : speed_(speed) {}

  void add(const Operation& operation) {
    if (const auto step = finder.add(operation)) {
      steps.push_back(*step);
    }
  }
  // A backward that issues one bucket per letter: 'a' of 1 KB, 'b' of 2 KB ...
  void backward(const std::string& buckets) {
    ++graphTask_;
    const double end = now + (static_cast<double>(buckets.size()) + 10) / speed_;
    for (const char letter : buckets) {
      now += 1 / speed_;
      add(bucket(graphTask_, now, end, bytesOf(letter)));
    }
    now = end;
  }
  // Synchronous calls outside of a backward, one per letter.
  void calls(const std::string& letters) {
    for (const char letter : letters) {
      add(synchronous(now, now + 1 / speed_, bytesOf(letter)));
      now += 2 / speed_;
    }
  }
  // Blocking sends 's' and receives 'r'.
  void pointToPoint(const std::string& letters) {
    for (const char letter : letters) {
      Operation operation = waited(now, now, now + 1 / speed_);
      operation.key.kind = letter == 's' ? OpKind::kSend : OpKind::kRecv;
      add(operation);
      now += 2 / speed_;
    }
  }
  // Explicit asynchronous calls of one size, then the waits for all of them.
  void callsThenWaits(int count) {
    for (int i = 0; i < count; ++i) {
      add(waited(now + i / speed_, now + (count + i) / speed_, now + (count + i + 1) / speed_));
    }
    now += (2 * count + 1) / speed_;
  }
  template <class F>
  void times(int count, F&& feed) {
    for (int i = 0; i < count; ++i) {
      feed();
    }
  }
  std::size_t finish() {
    if (const auto step = finder.finish()) {
      steps.push_back(*step);
    }
    return steps.size();
  }
  // Steps that ended while `feed` ran.
  template <class F>
  std::size_t stepsDuring(F&& feed) {
    const std::size_t before = steps.size();
    feed();
    return steps.size() - before;
  }

  StepFinder finder;
  std::vector<StepEnd> steps;
  double now = 0;

 private:
  double speed_;
  int graphTask_ = 0;
};

TEST(ShortestPeriod, isTheShortestThatRepeats) {
  using Tokens = std::deque<std::uint64_t>;
  EXPECT_EQ(shortestPeriod(Tokens{7, 1, 1, 1}, 3, 0), 1U);
  EXPECT_EQ(shortestPeriod(Tokens{1, 2, 1, 2, 1, 2}, 3, 0), 2U);
  EXPECT_EQ(shortestPeriod(Tokens{1, 2, 1, 2}, 3, 0), std::nullopt);
  EXPECT_EQ(shortestPeriod(Tokens{1, 2, 3, 4, 5, 6}, 3, 0), std::nullopt);
  EXPECT_EQ(shortestPeriod(Tokens{}, 3, 0), std::nullopt);
  EXPECT_EQ(shortestPeriod(Tokens{2, 1, 1, 1}, 3, 4), std::nullopt) << "it must hold over the last four";
}

TEST(StepFinder, everyBackwardOfASimpleJobIsAStep) {
  Feeder job;
  job.times(50, [&] { job.backward("abc"); });
  EXPECT_EQ(job.finish(), 50U);
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kGraphTask);
  for (std::size_t i = 0; i < job.steps.size(); ++i) {
    EXPECT_EQ(job.steps[i].index, static_cast<std::int64_t>(i));
    EXPECT_LT(job.steps[i].begin, job.steps[i].end);
    if (i > 0) {
      EXPECT_EQ(job.steps[i].begin, job.steps[i - 1].end) << "steps leave no gap";
    }
  }
}

TEST(StepFinder, stepEndsWithTheEndOfItsBackward) {
  Feeder job;
  job.add(bucket(1, 12, 24));
  job.add(bucket(1, 20, 24));
  job.add(bucket(2, 36, 48));
  job.finish();
  ASSERT_EQ(job.steps.size(), 2U);
  EXPECT_EQ(job.steps[0].begin, at(12)) << "before its first operation nothing is known of a job";
  EXPECT_EQ(job.steps[0].end, at(24));
  EXPECT_EQ(job.steps[1].begin, at(24));
  EXPECT_EQ(job.steps[1].end, at(48));
}

TEST(StepFinder, callsOutsideOfTheBackwardBelongToTheStepThatTheyPrecede) {
  Feeder job;
  job.times(20, [&] {
    job.calls("ab");
    job.backward("abc");
  });
  EXPECT_EQ(job.finish(), 20U);
}

TEST(StepFinder, bucketsThatAreRebuiltInTheFirstStepChangeNothing) {
  Feeder job;
  job.backward("abcd");
  job.times(49, [&] { job.backward("dcb"); });
  EXPECT_EQ(job.finish(), 50U);
}

TEST(StepFinder, twoBackwardsThatTakeTurnsAreOneStep) {
  Feeder job;
  job.times(20, [&] { job.backward("ab"), job.backward("c"); });
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.backward("ab"), job.backward("c"); }); }), 50U);
}

TEST(StepFinder, severalEqualBackwardsBeforeAnotherAreOneStepWithIt) {
  Feeder job;
  const auto step = [&] {
    job.times(5, [&] { job.backward("a"); });
    job.backward("b");
  };
  job.times(10, step);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, step); }), 50U);
}

TEST(StepFinder, reentrantBackwardsOfAStepAreOneStep) {
  Feeder job;
  const auto step = [&] { job.backward("ab"), job.backward("c"), job.backward("de"); };
  job.times(10, step);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, step); }), 50U);
}

TEST(StepFinder, oneBackwardMoreThanUsualDisturbsOneStepOnly) {
  Feeder job;
  const auto step = [&] { job.backward("ab"), job.backward("c"); };
  job.times(20, step);
  job.backward("ab");
  EXPECT_NEAR(static_cast<double>(job.stepsDuring([&] { job.times(50, step); })), 50, 1);
}

TEST(StepFinder, periodIsLearnedAnewWhenTheJobChanges) {
  Feeder job;
  job.times(30, [&] { job.backward("a"); });
  const auto step = [&] { job.backward("ab"), job.backward("c"); };
  job.times(20, step);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, step); }), 50U);
}

TEST(StepFinder, periodOfTheOperationsIsAStepWhereNoBackwardIssuesAny) {
  Feeder job;
  job.times(20, [&] { job.calls("abcdefabcdeg"); });
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kOpPeriod);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.calls("abcdefabcdeg"); }); }), 50U);
}

TEST(StepFinder, runOfEqualOperationsWithinAStepIsNotTakenForSteps) {
  Feeder job;
  job.times(30, [&] { job.calls("aaaaaaaaaab"); });
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kOpPeriod);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.calls("aaaaaaaaaab"); }); }), 50U);
}

TEST(StepFinder, periodOfTheOperationsIsLearnedAnewAfterADisturbance) {
  Feeder job;
  job.times(20, [&] { job.calls("abcd"); });
  job.calls("xyz");
  job.times(60, [&] { job.calls("abcd"); });
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kOpPeriod);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.calls("abcd"); }); }), 50U);
}

TEST(StepFinder, longestPeriodThatIsKeptIsFound) {
  std::string letters;
  for (int i = 0; i < 300; ++i) {
    letters += static_cast<char>('a' + (i * i + i / 26) % 23);
  }
  Feeder job;
  job.times(5, [&] { job.calls(letters); });
  EXPECT_EQ(job.stepsDuring([&] { job.times(10, [&] { job.calls(letters); }); }), 10U);
}

TEST(StepFinder, withoutAnyPeriodAStepIsASecond) {
  Feeder job;
  std::uint64_t bytes = 0;
  const auto irregular = [&] {
    job.add(synchronous(job.now, job.now + 1, ++bytes));
    job.now += 2;
  };
  job.times(3000, irregular);
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kTime);
  EXPECT_EQ(job.stepsDuring([&] { job.times(5000, irregular); }), 10U) << "5000 operations in 10 s";
}

TEST(StepFinder, backwardThatComesLateEndsTheOtherWays) {
  Feeder job;
  job.times(40, [&] { job.calls("abc"); });
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kOpPeriod);
  job.times(10, [&] { job.calls("abc"), job.backward("ab"); });
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kGraphTask);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.calls("abc"), job.backward("ab"); }); }), 50U);
}

TEST(StepFinder, otherThreadsAndPointToPointCallsDoNotCount) {
  Feeder plain;
  Feeder mixed;
  for (int i = 0; i < 30; ++i) {
    plain.backward("ab");
    Operation checkpoint = synchronous(mixed.now, mixed.now + 1, static_cast<std::uint64_t>(i));
    checkpoint.trainingThread = false;
    mixed.add(checkpoint);
    mixed.add(entered(OpKind::kSend, mixed.now));
    mixed.backward("ab");
  }
  EXPECT_EQ(plain.finish(), mixed.finish());
}

TEST(StepFinder, ranksThatIssueTheSameNumberTheirStepsAlike) {
  Feeder fast(2);
  Feeder slow(0.5);
  const auto letters = {"ab", "c", "ab", "c", "ab", "d", "ab", "c"};
  for (int i = 0; i < 400; ++i) {
    const std::string buckets = *(letters.begin() + i % 7);
    fast.backward(buckets);
    slow.backward(buckets);
    fast.calls("ab");
    slow.calls("ab");
    ASSERT_EQ(fast.steps.size(), slow.steps.size());
  }
  EXPECT_EQ(fast.finish(), slow.finish());
}

TEST(StepFinder, pipelineWithoutCollectivesHasTheStepsOfItsPointToPointCalls) {
  Feeder first;
  first.times(20, [&] { first.pointToPoint("ssssrrrr"); });
  EXPECT_EQ(first.finder.foundBy(), StepsFoundBy::kOpPeriod);
  EXPECT_EQ(first.stepsDuring([&] { first.times(50, [&] { first.pointToPoint("ssssrrrr"); }); }), 50U);
  for (std::size_t i = 1; i < first.steps.size(); ++i) {
    EXPECT_EQ(first.steps[i].end - first.steps[i].begin, ms(16));
    EXPECT_EQ(first.steps[i].index, static_cast<std::int64_t>(i));
  }
}

TEST(StepFinder, stepsOfAMiddleStageMayBePartsOfItsNeighbours) {
  Feeder middle;
  middle.times(20, [&] { middle.pointToPoint("rsrsrsrsrsrsrsrs"); });
  EXPECT_EQ(middle.stepsDuring([&] { middle.times(10, [&] { middle.pointToPoint("rsrsrsrsrsrsrsrs"); }); }), 80U);
}

TEST(StepFinder, collectivesTakeOverOnceTheyShowAPeriod) {
  Feeder job;
  const auto step = [&] { job.pointToPoint("ssrr"), job.calls("a"); };
  job.times(30, step);
  EXPECT_EQ(job.stepsDuring([&] { job.times(30, step); }), 30U) << "by the point to point calls";
  job.times(60, step);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.pointToPoint("srsr"), job.calls("a"); }); }), 50U);
}

TEST(StepFinder, pointToPointCallsWithoutAPeriodLeaveStepsOfASecond) {
  Feeder job;
  std::uint64_t bytes = 0;
  const auto irregular = [&] {
    Operation operation = waited(job.now, job.now, job.now + 1);
    operation.key.kind = OpKind::kSend;
    operation.bytes = ++bytes;
    job.add(operation);
    job.now += 2;
  };
  job.times(3000, irregular);
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kTime);
  EXPECT_EQ(job.stepsDuring([&] { job.times(5000, irregular); }), 10U) << "5000 calls in 10 s";
}

TEST(StepFinder, alikeAsynchronousCallsAreToldApartByTheWaitsBetweenThem) {
  Feeder job;
  job.times(40, [&] { job.callsThenWaits(4); });
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kOpPeriod);
  EXPECT_EQ(job.stepsDuring([&] { job.times(50, [&] { job.callsThenWaits(4); }); }), 50U);
}

TEST(StepFinder, stepEndsBeforeTheNextCallThoughAnEarlierOneIsWaitedForLater) {
  // In each step of 20 ms an asynchronous call at 2, a synchronous one from 10 to 12; then the wait for the first, 15 to 16.
  Feeder job;
  job.add(synchronous(0, 1, 1));  // so that the period is learned with the asynchronous call
  for (int step = 1; step < 100; ++step) {
    const double begin = 20.0 * step;
    job.add(waited(begin + 2, begin + 15, begin + 16));
    job.add(synchronous(begin + 10, begin + 12, 8192));
  }
  ASSERT_GT(job.steps.size(), 10U);
  for (const auto& step : job.steps) {
    const double inStep = std::fmod(toMilliseconds(step.end.time_since_epoch()), 20);
    EXPECT_DOUBLE_EQ(inStep, 10.0) << "the call that follows, and not the wait";
    EXPECT_EQ(step.end - step.begin, ms(20));
  }
}

TEST(StepFinder, jobWithoutOperationsHasNoSteps) {
  Feeder job;
  EXPECT_EQ(job.finish(), 0U);
  EXPECT_EQ(job.finder.foundBy(), StepsFoundBy::kNone);
}

TEST(StepFinder, everyWayHasANameThatReadsBack) {
  for (const auto way : {StepsFoundBy::kNone, StepsFoundBy::kGraphTask, StepsFoundBy::kOpPeriod, StepsFoundBy::kTime}) {
    EXPECT_EQ(stepsFoundByFromString(toString(way)), way);
  }
  EXPECT_EQ(stepsFoundByFromString("epoch"), std::nullopt);
}

}  // namespace
}  // namespace straggler
