// StragglerBackend: what it writes into the process's session, seen in the records that the session leaves in a folder.
#include "backend/c10d/straggler_backend.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/debug.h>

#include "backend/base/settings.h"
#include "tests/c10d/every_method.h"
#include "tests/c10d/exceptions.h"
#include "tests/fakes/recording_backend.h"
#include "tests/fakes/store_server.h"

namespace straggler {
namespace {

using Tensors = std::vector<at::Tensor>;
using Lines = std::vector<std::string>;

// The text of a field in a line of JSON: a list whole, a string with its quotes.
std::string field(const std::string& line, const std::string& name) {
  const auto key = "\"" + name + "\":";
  const auto begin = line.find(key);
  if (begin == std::string::npos) {
    return "missing";
  }
  const auto value = line.substr(begin + key.size());
  return value.front() == '[' ? value.substr(0, value.find(']') + 1) : value.substr(0, value.find_first_of(",}"));
}

std::vector<std::string> fields(const Lines& lines, const std::string& name) {
  std::vector<std::string> values;
  for (const auto& line : lines) {
    values.push_back(field(line, name));
  }
  return values;
}

class StragglerBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "straggler_records_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    setenv("STRAGGLER_DIR", path.c_str(), 1);
  }
  void TearDown() override {
    endSession();
    unsetenv("STRAGGLER_DIR");
    std::filesystem::remove_all(folder_);
  }

  // A wrapped backend and what it wraps.
  struct Pair {
    c10::intrusive_ptr<RecordingBackend> inner;
    c10::intrusive_ptr<StragglerBackend> outer;
  };
  Pair make(const std::string& name = "main", int rank = 0, std::vector<int> globalRanks = {0}) {
    const int size = static_cast<int>(globalRanks.size());
    auto inner = c10::make_intrusive<RecordingBackend>(rank, size);
    auto outer = c10::make_intrusive<StragglerBackend>(inner, store_, name, std::move(globalRanks));
    inner->forget();
    return {std::move(inner), std::move(outer)};
  }

  // Ends the session and gives the lines of a type that it wrote into a file.
  Lines records(const std::string& type, const std::string& file) {
    endSession();
    Lines lines;
    std::ifstream in(folder_ / file);
    for (std::string line; std::getline(in, line);) {
      if (field(line, "type") == "\"" + type + "\"") {
        lines.push_back(line);
      }
    }
    return lines;
  }
  Lines operations() { return records("operation", "rank-00000.jsonl"); }

  std::filesystem::path folder_;
  c10::intrusive_ptr<c10d::Store> store_ = c10::make_intrusive<c10d::HashStore>();
  Tensors tensors_{at::ones({2, 3}), at::ones({4})};
};

// ---- Forwarding ----

TEST_F(StragglerBackendTest, everyMethodReachesTheInnerWithItsArguments) {
  const Pair anchor = make("anchor");
  for (const bool asynchronous : {true, false}) {
    const Pair pair = make();
    for (const auto& method : everyMethod(asynchronous)) {
      SCOPED_TRACE(method.name);
      pair.inner->forget();
      const std::string direct = method.call(*pair.inner);
      const auto asked = pair.inner->calls;
      pair.inner->forget();
      EXPECT_EQ(method.call(*pair.outer), direct);
      EXPECT_EQ(pair.inner->calls, asked);
    }
  }
}

TEST_F(StragglerBackendTest, exceptionsOfTheInnerPassUnchanged) {
  const Pair anchor = make("anchor");
  const Pair pair = make();
  expectExceptionsPassUnchanged(*pair.inner, *pair.outer);
}

// setGroupDesc() is not virtual, so the inner hears of it a little later.
TEST_F(StragglerBackendTest, theDescriptionReachesTheInnerByTheNextOperation) {
  const Pair pair = make();
  pair.outer->setGroupDesc("data parallel");
  pair.outer->allreduce(tensors_, {});
  EXPECT_EQ(pair.inner->getGroupDesc(), "data parallel");
  EXPECT_EQ(field(operations().at(0), "process_group"), R"(["main","data parallel"])");
}

TEST_F(StragglerBackendTest, theInnerIsShutDownOnce) {
  Pair pair = make();
  pair.outer->shutdown();
  pair.outer.reset();
  EXPECT_EQ(pair.inner->calls, Lines{"shutdown()"});
}

// ---- Records ----

TEST_F(StragglerBackendTest, anOperationIsRecordedWithWhatTheCallTells) {
  const Pair pair = make();
  c10d::AllreduceOptions options;
  options.asyncOp = false;
  pair.outer->allreduce(tensors_, options);
  pair.inner->lastWork->future->markCompleted();
  const auto lines = operations();
  ASSERT_EQ(lines.size(), 1U);
  const auto& line = lines.front();
  EXPECT_EQ(field(line, "kind"), "\"all_reduce\"");
  EXPECT_EQ(field(line, "method"), "\"allreduce\"");
  EXPECT_EQ(field(line, "rank"), "0");
  EXPECT_EQ(field(line, "process_group"), R"(["main",""])");
  EXPECT_EQ(field(line, "collective_seq_id"), "0");
  EXPECT_EQ(field(line, "bytes"), "40");
  EXPECT_EQ(field(line, "input_dtypes"), R"(["Float"])");
  EXPECT_EQ(field(line, "async"), "false");
  EXPECT_EQ(field(line, "state"), "\"completed\"");
  EXPECT_EQ(field(line, "completed_from"), "\"future\"");
  EXPECT_EQ(field(line, "released_from"), "\"completion\"");
  EXPECT_EQ(field(line, "graph_task"), "null");
  EXPECT_EQ(field(line, "training_thread"), "true");
}

TEST_F(StragglerBackendTest, aSynchronousCallerGetsTheWorkOfTheInnerItself) {
  const Pair pair = make();
  c10d::AllreduceOptions options;
  options.asyncOp = false;
  EXPECT_EQ(pair.outer->allreduce(tensors_, options), pair.inner->lastWork);
}

TEST_F(StragglerBackendTest, theWaitOfACallerIsObserved) {
  const Pair pair = make();
  pair.inner->givesFutures = false;  // so that only the wait tells that a Work is done
  c10d::AllreduceOptions options;
  for (const bool asynchronous : {false, true}) {
    options.asyncOp = asynchronous;
    const auto work = pair.outer->allreduce(tensors_, options);
    EXPECT_NE(work, pair.inner->lastWork);
    work->wait();
  }
  EXPECT_EQ(fields(operations(), "released_from"), (Lines{"\"completion\"", "\"wait\""}));
}

TEST_F(StragglerBackendTest, eachKindOfMethodHasItsKindOfRecord) {
  const Pair pair = make();
  std::vector<Tensors> lists{tensors_};
  at::Tensor one = at::ones({2});
  at::Tensor two = at::ones({2});
  std::vector<int64_t> splits;
  pair.outer->broadcast(tensors_, {});
  pair.outer->reduce(tensors_, {});
  pair.outer->allgather(lists, tensors_, {});
  pair.outer->_allgather_base(one, two, {});
  pair.outer->gather(lists, tensors_, {});
  pair.outer->scatter(tensors_, lists, {});
  pair.outer->reduce_scatter(tensors_, lists, {});
  pair.outer->_reduce_scatter_base(one, two, {});
  pair.outer->alltoall(tensors_, tensors_, {});
  pair.outer->alltoall_base(one, two, splits, splits, {});
  pair.outer->barrier({});
  pair.outer->monitoredBarrier({}, false);
  EXPECT_EQ(fields(operations(), "kind"),
            (Lines{"\"broadcast\"", "\"reduce\"", "\"all_gather\"", "\"all_gather\"", "\"gather\"", "\"scatter\"",
                   "\"reduce_scatter\"", "\"reduce_scatter\"", "\"all_to_all\"", "\"all_to_all\"", "\"barrier\"",
                   "\"barrier\""}));
}

TEST_F(StragglerBackendTest, collectivesAreNumberedByGroupAndPointToPointIsNot) {
  const Pair main = make("main");
  const Pair other = make("other");
  main.outer->allreduce(tensors_, {});
  main.outer->send(tensors_, 0, 0);
  other.outer->barrier({});
  main.outer->recv(tensors_, 0, 0);
  main.outer->broadcast(tensors_, {});
  const auto lines = operations();
  EXPECT_EQ(fields(lines, "collective_seq_id"), (Lines{"0", "null", "0", "null", "1"}));
  EXPECT_EQ(fields(lines, "is_p2p"), (Lines{"false", "true", "false", "true", "false"}));
}

TEST_F(StragglerBackendTest, aCallThatThrowsIsAFailedRecordAndIsNumbered) {
  const Pair pair = make();
  pair.inner->throws = std::make_exception_ptr(Unusual("the peer is gone"));
  EXPECT_THROW(pair.outer->barrier({}), Unusual);
  pair.inner->throws = nullptr;
  pair.outer->barrier({});
  const auto lines = operations();
  EXPECT_EQ(fields(lines, "collective_seq_id"), (Lines{"0", "1"}));
  EXPECT_EQ(field(lines.at(0), "state"), "\"failed\"");
}

TEST_F(StragglerBackendTest, aCallWithoutAWorkIsAClosedRecord) {
  const Pair pair = make();
  pair.inner->givesWorks = false;
  c10d::AllreduceOptions options;
  options.asyncOp = false;
  EXPECT_EQ(pair.outer->allreduce(tensors_, options), nullptr);
  pair.outer->monitoredBarrier({}, false);
  const auto lines = operations();
  EXPECT_EQ(fields(lines, "state"), (Lines{"\"completed\"", "\"completed\""}));
  EXPECT_EQ(fields(lines, "released_from"), (Lines{"\"completion\"", "\"completion\""}));
}

// ---- Coalescing ----

TEST_F(StragglerBackendTest, whatIsCoalescedIsOneRecord) {
  const Pair pair = make();
  pair.outer->startCoalescing();
  pair.outer->allreduce(tensors_, {});
  pair.outer->allreduce(tensors_, {});
  pair.outer->endCoalescing();
  pair.outer->barrier({});
  const auto lines = operations();
  EXPECT_EQ(fields(lines, "kind"), (Lines{"\"coalesced\"", "\"barrier\""}));
  EXPECT_EQ(fields(lines, "collective_seq_id"), (Lines{"0", "1"}));
  EXPECT_EQ(field(lines.at(0), "bytes"), "80");
}

TEST_F(StragglerBackendTest, aBatchOfPointToPointIsNotNumbered) {
  const Pair pair = make();
  pair.outer->startCoalescing();
  pair.outer->recv(tensors_, 0, 0);
  pair.outer->send(tensors_, 0, 0);
  pair.outer->endCoalescing();
  pair.outer->startCoalescing();
  pair.outer->send(tensors_, 0, 0);
  pair.outer->barrier({});
  pair.outer->endCoalescing();
  const auto lines = operations();
  EXPECT_EQ(fields(lines, "kind"), (Lines{"\"batched_p2p\"", "\"coalesced\""}));
  EXPECT_EQ(fields(lines, "collective_seq_id"), (Lines{"null", "0"}));
}

TEST_F(StragglerBackendTest, aBackendThatDoesNotCoalesceLeavesNoBatchOpen) {
  const Pair pair = make();
  pair.inner->throws = std::make_exception_ptr(Unusual("no coalescing here"));
  EXPECT_THROW(pair.outer->startCoalescing(), Unusual);
  pair.inner->throws = nullptr;
  pair.outer->barrier({});
  EXPECT_EQ(fields(operations(), "kind"), Lines{"\"barrier\""});
}

// ---- Groups made from this one ----

TEST_F(StragglerBackendTest, groupsThatTheInnerMakesAreWrappedInTheSameSession) {
  const Pair pair = make();
  std::vector<c10::intrusive_ptr<c10d::Backend>> made = {pair.outer->split(store_, {0}, nullptr),
                                                         pair.outer->merge(store_, nullptr, 0, 1),
                                                         pair.outer->shrink({1}, 0, nullptr)};
  const std::vector<std::string> names = {"from split", "from merge", "from shrink"};
  for (std::size_t i = 0; i < made.size(); ++i) {
    ASSERT_NE(dynamic_cast<StragglerBackend*>(made[i].get()), nullptr);
    made[i]->allreduce(tensors_, {});  // has no name yet: forwarded, not recorded
    made[i]->setGroupUid(names[i]);
    made[i]->allreduce(tensors_, {});
  }
  EXPECT_EQ(dynamic_cast<StragglerBackend&>(*made.back()).inner(), pair.inner->lastMade);
  const auto lines = operations();
  EXPECT_EQ(fields(lines, "process_group"),
            (Lines{R"(["from split",""])", R"(["from merge",""])", R"(["from shrink",""])"}));
  EXPECT_EQ(fields(lines, "collective_seq_id"), (Lines{"0", "0", "0"}));
}

TEST_F(StragglerBackendTest, aRankThatIsNotInTheNewGroupGetsNothing) {
  const Pair pair = make();
  pair.inner->givesBackends = false;
  EXPECT_EQ(pair.outer->split(store_, {}, nullptr), nullptr);
}

TEST_F(StragglerBackendTest, aGroupIsToldByItsGlobalRanks) {
  const Pair pair = make("main", 0, {4, 6, 5, 7});
  pair.inner->newSize = 2;
  const auto half = pair.outer->split(store_, {0, 2}, nullptr);
  half->setGroupUid("half");
  half->barrier({});
  EXPECT_EQ(fields(records("session", "job.jsonl"), "ranks"), Lines{"[4,5,6,7]"});
  EXPECT_EQ(fields(records("group", "job.jsonl"), "ranks"), (Lines{"[4,6,5,7]", "[4,5]"}));
  EXPECT_EQ(records("operation", "rank-00004.jsonl").size(), 1U);
}

#if STRAGGLER_TORCH >= 214
TEST_F(StragglerBackendTest, aGroupThatGrewCanBeSplit) {
  const Pair pair = make();
  pair.inner->newRank = 1;
  pair.inner->newSize = 3;
  pair.outer->reconfigure({});
  const auto made = pair.outer->split(store_, {0, 1, 2}, nullptr);
  EXPECT_EQ(made->getSize(), 3);
}
#endif

// ---- The session ----

TEST_F(StragglerBackendTest, aSettingThatIsNotValidIsAnErrorBeforeAnythingIsCommunicated) {
  setenv("STRAGGLER_WINDOW", "many", 1);
  const auto inner = c10::make_intrusive<RecordingBackend>();
  EXPECT_THROW(c10::make_intrusive<StragglerBackend>(inner, store_, "main", std::vector<int>{0}), SettingsError);
  unsetenv("STRAGGLER_WINDOW");
  for (const auto& call : inner->calls) {
    EXPECT_TRUE(call.starts_with("get")) << call;
  }
}

TEST_F(StragglerBackendTest, asManyGlobalRanksAsMembersAreAskedFor) {
  const auto inner = c10::make_intrusive<RecordingBackend>(0, 2);
  EXPECT_THROW(c10::make_intrusive<StragglerBackend>(inner, store_, "main", std::vector<int>{0}), c10::ValueError);
}

// All ranks are in that mode: one line for the job, of the root, however many groups it has.
TEST_F(StragglerBackendTest, torchsDebugModeIsToldOnceAndByTheRootAlone) {
  const auto said = [this](int rank) {
    testing::internal::CaptureStderr();
    const Pair first = make("first", rank, {3, 1});
    const Pair second = make("second", rank, {3, 1});
    endSession();
    const std::string all = testing::internal::GetCapturedStderr();
    Lines lines;
    for (auto begin = all.find("straggler: rank "); begin != std::string::npos;
         begin = all.find("straggler: rank ", begin + 1)) {
      lines.push_back(all.substr(begin, all.find('\n', begin) - begin));
    }
    return lines;
  };
  const auto level = c10d::debug_level();
  c10d::setDebugLevel(c10d::DebugLevel::Info);
  EXPECT_EQ(said(1), Lines{});
  c10d::setDebugLevel(c10d::DebugLevel::Detail);
  EXPECT_EQ(said(0), Lines{}) << "global rank 3";
  EXPECT_EQ(said(1), Lines{"straggler: rank 1: TORCH_DISTRIBUTED_DEBUG=DETAIL has torch check each collective by "
                           "others, which distorts its times; training goes on"});
  c10d::setDebugLevel(level);
}

TEST_F(StragglerBackendTest, theLastGroupThatIsShutDownEndsTheSession) {
  const Pair first = make("first");
  const Pair second = make("second");
  first.outer->barrier({});
  first.outer->shutdown();
  second.outer->barrier({});
  EXPECT_EQ(records("report", "job.jsonl").size(), 1U);
  EXPECT_NE(lastReport().value_or("").find(R"("collectives":2,)"), std::string::npos);
}

TEST_F(StragglerBackendTest, oneSessionAfterTheOtherLeavesNoThread) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  at::ones({1});  // whatever torch starts by itself
  const auto before = threads();
  for (int i = 0; i < 5; ++i) {
    const Pair pair = make();
    pair.outer->barrier({});
    pair.outer->shutdown();
  }
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(records("report", "job.jsonl").size(), 5U);
  EXPECT_EQ(fields(operations(), "collective_seq_id"), (Lines{"0", "0", "0", "0", "0"}));
}

// TCPStore waits for its answers without a limit: the thread that asked is left behind.
TEST_F(StragglerBackendTest, aStoreThatStandsStillHoldsNobodyUpForLong) {
  const StoreServer server;
  store_ = server.client();
  const Pair pair = make("main", 1, {0, 1});
  pair.outer->barrier({});
  server.standStill();
  const auto begin = std::chrono::steady_clock::now();
  pair.outer->barrier({});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
  pair.outer->shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST_F(StragglerBackendTest, aBackendThatOutlivesItsSessionStillForwards) {
  const Pair pair = make();
  endSession();
  pair.outer->barrier({});
  EXPECT_EQ(pair.inner->calls.size(), 1U);
  pair.outer->shutdown();
}

}  // namespace
}  // namespace straggler
