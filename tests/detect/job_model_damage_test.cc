// Frames that were damaged on their way and decode all the same: the model takes them in and stays of sound mind. Meant
// for UndefinedBehaviorSanitizer.
#include <random>

#include <gtest/gtest.h>

#include "backend/detect/job_model.h"
#include "backend/exchange/codec.h"
#include "tests/fakes/damage.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

TEST(JobModelDamage, damagedFramesNeverCrashTheModel) {
  SyntheticJob job{.ranks = 3, .steps = 100};
  std::vector<std::vector<std::uint8_t>> whole;
  for (Frame frame : job.frames()) {
    frame.messages.emplace_back(ArrivalSamples{
        1,
        {{{job.group().id(), 10 + whole.size() / 3, OpKind::kAllReduce}, at(10 + frame.rank), at(20 + frame.rank)}}});
    frame.messages.emplace_back(ClockReading{at(10'001), at(10'002), at(1), at(2)});
    frame.messages.emplace_back(MitigationSummary{true, "carry", "group 0", 41, 40, 37, 1, 2, 74, 5, 325'000});
    whole.push_back(encode(frame));
  }
  std::mt19937 random(20261130);
  JobModel model(job.members(), 10);
  int accepted = 0;
  for (std::size_t i = 0; i < 60'000; ++i) {
    if (const auto frame = decode(damaged(whole[i % whole.size()], random))) {
      ++accepted;
      model.apply(*frame);
    }
  }
  EXPECT_GT(accepted, 600) << "else this test says nothing";
  (void)model.verdict();
}

}  // namespace
}  // namespace straggler
