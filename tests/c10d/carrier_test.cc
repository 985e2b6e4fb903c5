// Carrier: what reaches the inner, and what the main thread gets, with an inner that is done when the test says so.
#include "backend/c10d/carrier.h"

#include <cmath>
#include <limits>
#include <thread>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/fakes/held_backend.h"

namespace straggler {
namespace {

constexpr std::int64_t kElements = 3;

SlotOperation bucket(double scale = 1) {
  SlotOperation operation;
  operation.kind = SlotOperation::Kind::kAllReduce;
  operation.bucket = 0;
  operation.dtype = static_cast<std::int8_t>(at::kFloat);
  operation.elements = kElements;
  operation.bytes = kElements * sizeof(float);
  operation.scale = scale;
  return operation;
}

at::Tensor filledWith(double value) { return at::full({kElements}, value); }

class CarrierTest : public testing::Test {
 protected:
  void make(MitigationMode mode, std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
    Engine::Options options;
    options.mode = mode;
    carrier = std::make_shared<Carrier>(inner, options, timeout);
  }
  void SetUp() override { make(MitigationMode::kCarry); }

  c10::intrusive_ptr<c10d::Work> arrive(at::Tensor& tensor, double scale = 1) {
    const Carrier::Form form{tensor.options(), {}};
    std::vector<at::Tensor> tensors{tensor};
    return carrier->arrive(bucket(scale), "an all_reduce", &tensor, &form,
                           [&] { return inner->allreduce(tensors, {}); });
  }
  void request(Slot last, double scale = 1) { carrier->hear(JoinRequest{{last, {bucket(scale)}}}); }
  double contributed(std::size_t index) const { return inner->issued.at(index).contribution[0].item<double>(); }
  BucketLedger ledger() const {
    return carrier->with([](const Engine& engine) { return engine.ledger().total(); });
  }

  c10::intrusive_ptr<HeldBackend> inner = c10::make_intrusive<HeldBackend>();
  std::shared_ptr<Carrier> carrier;
  at::Tensor first = filledWith(1);
  at::Tensor second = filledWith(2);
  at::Tensor third = filledWith(4);
};

TEST_F(CarrierTest, whoIsInTimeReducesItsOwnTensorAndGetsTheInnersWork) {
  const auto work = arrive(first);
  ASSERT_EQ(inner->issued.size(), 1U);
  EXPECT_EQ(work, inner->issued[0].work);
  EXPECT_TRUE(inner->issued[0].tensor.is_alias_of(first));
}

TEST_F(CarrierTest, aSlotThatWasFilledGivesItsResultAndTheGradientGoesWithTheNext) {
  arrive(first);
  request(1);
  EXPECT_EQ(contributed(1), 0);
  const auto work = arrive(second);
  EXPECT_EQ(inner->issued.size(), 2U) << "the main thread issues nothing";
  EXPECT_FALSE(work->isCompleted());
  inner->complete(1, 30);
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(work->getFuture()->completed());
  EXPECT_TRUE(second.equal(filledWith(30)));
  arrive(third);
  EXPECT_EQ(contributed(2), 4 + 2);
  EXPECT_EQ(ledger(), (BucketLedger{3, 2, 1, 0, 0, 1, 1}));
}

TEST_F(CarrierTest, aResultThatIsThereIsTakenAtOnce) {
  arrive(first);
  request(1);
  inner->complete(1, 30);
  const auto work = arrive(second);
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(second.equal(filledWith(30)));
}

TEST_F(CarrierTest, whatIsOwedAtTheMainThreadsStepHoldsWhatTheProxyHasContributedSince) {
  arrive(first);
  request(1);
  arrive(second);
  EXPECT_EQ(carrier->residuals().at(0)[0].item<double>(), 2);
  request(2);
  EXPECT_EQ(contributed(2), 2) << "of a slot that the main thread has not reached";
  EXPECT_EQ(carrier->residuals().at(0)[0].item<double>(), 2);
  arrive(third);
  EXPECT_EQ(carrier->residuals().at(0)[0].item<double>(), 4);
}

TEST_F(CarrierTest, aGradientThatIsNotFiniteIsDroppedAndCounted) {
  arrive(first);
  request(1);
  at::Tensor spoilt = filledWith(std::nan(""));
  arrive(spoilt);
  arrive(third);
  EXPECT_EQ(contributed(2), 4);
  EXPECT_EQ(ledger(), (BucketLedger{3, 2, 0, 1, 0, 0, 0}));
}

TEST_F(CarrierTest, whatIsOwedIsContributedInTheScaleOfTheSlot) {
  arrive(first, 8);
  request(1, 8);
  arrive(second, 8);  // 2, scaled by 8: a gradient of 0.25
  request(2, 32);
  EXPECT_EQ(contributed(2), 0.25 * 32);
}

TEST_F(CarrierTest, anErrorOfTheInnerReachesTheMainThread) {
  arrive(first);
  request(1);
  const auto work = arrive(second);
  inner->fail(1, "connection closed");
  EXPECT_TRUE(work->isCompleted());
  EXPECT_THROW(work->wait(), std::runtime_error);
  EXPECT_TRUE(second.equal(filledWith(2))) << "nothing was written";
}

TEST_F(CarrierTest, aSlotThatCouldNotBeFilledRaisesWhereTheMainThreadComesToIt) {
  arrive(first);
  inner->refuses = true;
  request(1);
  EXPECT_NE(carrier->look().failure.find("the inner refuses"), std::string::npos);
  EXPECT_EQ(carrier->look().failure, "") << "told once";
  EXPECT_THROW(arrive(second), std::runtime_error);
}

TEST_F(CarrierTest, anotherCallThanTheOneFilledRaisesAndSoDoesEveryCallAfterIt) {
  arrive(first);
  request(1);
  at::Tensor other = at::ones({kElements + 1});
  SlotOperation operation = bucket();
  operation.elements = kElements + 1;
  const auto call = [&] {
    carrier->arrive(operation, "an all_reduce of 4 elements", &other, nullptr, [] { return nullptr; });
  };
  EXPECT_THROW(call(), c10::Error);
  EXPECT_THROW(arrive(second), c10::Error);
  EXPECT_EQ(inner->issued.size(), 2U);
}

TEST_F(CarrierTest, aCallWithoutAWorkIsComplete) {
  carrier->arrive(SlotOperation{}, "a barrier", nullptr, nullptr, [] { return c10::intrusive_ptr<c10d::Work>(); });
  EXPECT_EQ(carrier->look().tell.pending, std::nullopt);
}

// ---- Drop ----

TEST_F(CarrierTest, inDropAResultIsPromisedUntilTheSlotMayBeFilled) {
  make(MitigationMode::kDrop);
  arrive(first);
  request(1);
  const auto work = arrive(second);
  EXPECT_EQ(inner->issued.size(), 1U);
  carrier->hear(Go{1, 3});
  ASSERT_EQ(inner->issued.size(), 2U);
  EXPECT_EQ(contributed(1), 0);
  EXPECT_FALSE(work->isCompleted());
  inner->complete(1, 30);
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(second.equal(filledWith(40))) << "30 * 4 / 3";
}

TEST_F(CarrierTest, inDropAParticipantScalesTheSumUp) {
  make(MitigationMode::kDrop);
  const auto work = arrive(first);
  carrier->hear(Announcement{0, 2});
  inner->complete(0, 10);
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(first.equal(filledWith(20)));
}

TEST_F(CarrierTest, inDropASumOfAllIsNotScaled) {
  make(MitigationMode::kDrop);
  const auto work = arrive(first);
  inner->complete(0, 10);
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(first.equal(filledWith(10)));
}

TEST_F(CarrierTest, aPromiseThatIsNotKeptInTimeIsAnError) {
  make(MitigationMode::kDrop, std::chrono::milliseconds(500));
  arrive(first);
  request(1);
  const auto work = arrive(second);
  carrier->look();
  EXPECT_FALSE(work->isCompleted());
  std::this_thread::sleep_for(std::chrono::milliseconds(510));
  carrier->look();
  EXPECT_TRUE(work->isCompleted());
  EXPECT_THROW(work->wait(), std::runtime_error);
}

TEST_F(CarrierTest, whoeverWaitsIsLetGoWhenItStops) {
  make(MitigationMode::kDrop);
  arrive(first);
  request(1);
  const auto work = arrive(second);
  carrier->stop();
  EXPECT_TRUE(work->isCompleted());
  EXPECT_THROW(work->wait(), std::runtime_error);
  EXPECT_THROW(arrive(third), c10::Error) << "slot 2 comes after slot 1, which is never filled";
}

}  // namespace
}  // namespace straggler
