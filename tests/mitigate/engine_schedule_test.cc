// The engine under a seeded scheduler: interleavings of arrivals, requests, completions and messages that are lost, late or
// repeated, for 2 to 4 ranks and a staleness of up to 3.
#include <gtest/gtest.h>

#include "tests/fakes/simulated_group.h"
#include "tests/fakes/slot_operations.h"

namespace straggler {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kSeeds = 40;  // of each program
#else
constexpr std::uint32_t kSeeds = 400;
#endif
constexpr std::uint64_t kEnoughFilled = 5 * kSeeds;  // the interleavings have to reach the proxy

struct Program {
  const char* name;
  std::vector<SlotOperation> step;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"one bucket", {bucketOf(0, 64)}},
      {"two equal buckets", {bucketOf(0, 64), bucketOf(1, 64)}},
      {"buffers", {broadcastFrom(0), bucketOf(0, 64), bucketOf(1, 32)}},
      {"a loss every step", {bucketOf(0, 64), bucketOf(1, 32), exactOf()}},
      {"buffers and a barrier", {broadcastFrom(0), broadcastFrom(1), bucketOf(0, 64), barrierOf()}},
  };
  return all;
}

void expectSound(SimulatedGroup& group, const SimulatedGroup::Options& options, const std::string& what) {
  SCOPED_TRACE(what + ", seed " + std::to_string(options.seed));
  ASSERT_TRUE(group.run()) << (group.faults().empty() ? "" : group.faults().front());
  ASSERT_TRUE(group.faults().empty()) << group.faults().front();
  BucketLedger sum;
  for (int rank = 0; rank < options.ranks; ++rank) {
    EXPECT_EQ(group.results(rank), group.results(0)) << "rank " << rank;
    const Engine& engine = group.engine(rank);
    EXPECT_EQ(engine.unread(), 0U);
    for (const auto& [id, ledger] : engine.ledger().buckets()) {
      EXPECT_EQ(ledger.produced, static_cast<std::uint64_t>(options.steps));
      EXPECT_EQ(ledger.produced, ledger.onTime + ledger.late + ledger.dropped + ledger.pending);
      EXPECT_LE(ledger.maxStaleness, options.staleness);
    }
  }
  for (const auto& operation : options.program) {
    if (operation.bucket && options.mode == MitigationMode::kCarry) {
      EXPECT_EQ(group.applied(*operation.bucket) + group.owed(*operation.bucket), group.brought(*operation.bucket));
    }
  }
}

SimulatedGroup::Options drawn(const Program& program, std::uint32_t seed) {
  SimulatedGroup::Options options;
  options.ranks = 2 + static_cast<int>(seed % 3);
  options.quorum = 1 + static_cast<int>(seed / 3) % options.ranks;
  options.staleness = 1 + seed % 3;
  options.program = program.step;
  options.lost = (seed % 4) * 0.2;
  options.repeated = (seed % 5) * 0.15;
  options.steps = 12;
  options.seed = seed;
  return options;
}

// Runs all programs under many seeds; gives how many slots were filled by proxy.
std::uint64_t walk(MitigationMode mode) {
  std::uint64_t filled = 0;
  for (const Program& program : programs()) {
    for (std::uint32_t seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
      SimulatedGroup::Options options = drawn(program, seed);
      options.mode = mode;
      options.mayStandDown = seed % 7 == 0;
      SimulatedGroup group(options);
      expectSound(group, options, program.name);
      for (int rank = 0; rank < options.ranks; ++rank) {
        filled += group.engine(rank).filledByProxy();
      }
    }
  }
  return filled;
}

TEST(EngineSchedule, afterAFlushOnAllRanksNothingIsOwed) {
  std::uint64_t filled = 0;
  for (const Program& program : programs()) {
    for (std::uint32_t seed = 0; seed < kSeeds / 2; ++seed) {
      SimulatedGroup::Options options = drawn(program, seed);
      options.flushBefore = options.steps - 1;
      SimulatedGroup group(options);
      expectSound(group, options, program.name);
      for (int rank = 0; rank < options.ranks; ++rank) {
        filled += group.engine(rank).filledByProxy();
        EXPECT_EQ(group.engine(rank).ledger().total().pending, 0U) << program.name << ", seed " << seed;
      }
    }
  }
  EXPECT_GT(filled, kEnoughFilled);
}

// The recorded run again, under another schedule: the same results, slot by slot, and no message.
void expectRepeated(MitigationMode mode) {
  std::uint64_t filled = 0;
  for (const Program& program : programs()) {
    for (std::uint32_t seed = 0; seed < kSeeds / 2; ++seed) {
      SCOPED_TRACE(std::string(program.name) + ", seed " + std::to_string(seed));
      SimulatedGroup::Options options = drawn(program, seed);
      options.mode = mode;
      options.gradientSeed = seed;
      SimulatedGroup recorded(options);
      ASSERT_TRUE(recorded.run()) << (recorded.faults().empty() ? "" : recorded.faults().front());
      std::vector<std::shared_ptr<ParticipationScript>> scripts;
      std::map<Slot, std::uint32_t> absent;
      for (int rank = 0; rank < options.ranks; ++rank) {
        scripts.push_back(std::make_shared<ParticipationScript>());
        for (const auto& fill : recorded.participations(rank)) {
          scripts.back()->fills.push_back(fill);
          absent[fill.slot] += fill.operation.bucket ? 1 : 0;
          ++filled;
        }
      }
      for (const auto& script : scripts) {
        for (const auto& [slot, count] : absent) {
          script->participants[slot] = static_cast<std::uint32_t>(options.ranks) - count;
        }
        options.scripts.push_back(script);
      }
      options.seed = seed + 1'000'000;
      SimulatedGroup again(options);
      ASSERT_TRUE(again.run()) << (again.faults().empty() ? "" : again.faults().front());
      ASSERT_TRUE(again.faults().empty()) << again.faults().front();
      for (int rank = 0; rank < options.ranks; ++rank) {
        ASSERT_EQ(again.results(rank), recorded.results(rank));
        ASSERT_EQ(again.participations(rank), recorded.participations(rank));
      }
    }
  }
  EXPECT_GT(filled, kEnoughFilled);
}

TEST(EngineSchedule, aRecordedRunIsRepeatedWhoeverIsLate) { expectRepeated(MitigationMode::kCarry); }

TEST(EngineSchedule, aRecordedRunOfDropIsRepeatedWhoeverIsLate) { expectRepeated(MitigationMode::kDrop); }

TEST(EngineSchedule, carryLosesNothingInAnyInterleaving) { EXPECT_GT(walk(MitigationMode::kCarry), kEnoughFilled); }

TEST(EngineSchedule, dropIsAgreedOnInAnyInterleaving) { EXPECT_GT(walk(MitigationMode::kDrop), kEnoughFilled); }

}  // namespace
}  // namespace straggler
