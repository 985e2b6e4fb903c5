#include "backend/c10d/chained_work.h"

#include <stdexcept>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/fakes/recording_work.h"

namespace straggler {
namespace {

c10::intrusive_ptr<RecordingWork> held() {
  auto work = c10::make_intrusive<RecordingWork>();
  work->future = RecordingWork::makeFuture();
  return work;
}

TEST(ChainedWork, itIsDoneWhenTheOtherIsAndSomethingWasDoneToItsResult) {
  const auto before = held();
  int finished = 0;
  at::Tensor output = at::ones({1});
  const auto work = ChainedWork::after(before, {output}, [&] { ++finished; });
  EXPECT_FALSE(work->isCompleted());
  before->future->markCompleted(c10::IValue());
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(work->isSuccess());
  EXPECT_TRUE(work->result().at(0).is_same(output));
  EXPECT_TRUE(work->getFuture()->value().toTensorVector().at(0).is_same(output));
}

TEST(ChainedWork, itFailsAsTheOtherFails) {
  const auto before = held();
  const auto work = ChainedWork::after(before, {}, [] { FAIL(); });
  before->future->setError(std::make_exception_ptr(std::runtime_error("closed by peer")));
  EXPECT_THROW(work->wait(), std::runtime_error);
  EXPECT_TRUE(work->getFuture()->hasError());
}

TEST(ChainedWork, whatThrowsWhileItFinishesIsItsError) {
  const auto before = held();
  const auto work = ChainedWork::after(before, {}, [] { throw std::runtime_error("no memory"); });
  before->future->markCompleted(c10::IValue());
  EXPECT_THROW(work->wait(), std::runtime_error);
}

TEST(ChainedWork, theOtherMayComeLater) {
  const auto work = c10::make_intrusive<ChainedWork>(c10d::OpType::ALLREDUCE, std::vector<at::Tensor>{});
  const auto before = held();
  work->follow(before, [] {});
  EXPECT_FALSE(work->isCompleted());
  before->future->markCompleted(c10::IValue());
  EXPECT_TRUE(work->isCompleted());
}

}  // namespace
}  // namespace straggler
