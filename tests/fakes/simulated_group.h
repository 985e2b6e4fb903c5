// SimulatedGroup: ranks with an engine each, a coordinator, an inner backend that completes a slot when all ranks have issued
// it, and a network that loses, delays and repeats. A seeded scheduler picks what happens next, so a run repeats.
//
// Gradients are whole numbers, so that every sum is exact. The main thread of each rank runs a program: the operations of a
// step, again and again. Nothing here is shared with the engine but what a carrier has to do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/mitigate/coordinator.h"
#include "backend/mitigate/engine.h"

namespace straggler {

class SimulatedGroup {
 public:
  struct Options {
    int ranks = 4;
    int quorum = 2;
    int steps = 6;
    std::vector<SlotOperation> program;  // of a step
    MitigationMode mode = MitigationMode::kCarry;
    std::uint64_t staleness = 3;
    double lost = 0;  // share of messages
    double repeated = 0;
    bool mayStandDown = false;
    int flushBefore = -1;                                             // step; on all ranks
    std::vector<std::shared_ptr<const ParticipationScript>> scripts;  // by rank; empty: none
    std::optional<std::uint32_t> gradientSeed;                        // of gradients that do not depend on the schedule
    std::uint32_t seed = 0;
  };

  explicit SimulatedGroup(Options options);

  // Until every main thread has ended its program, or nothing can happen any more. Says whether they have.
  bool run();

  // What a rank's main thread was given, slot by slot, and what it brought.
  const std::vector<std::int64_t>& results(int rank) const { return ranks_[static_cast<std::size_t>(rank)].results; }
  std::int64_t brought(BucketId bucket) const { return brought_.at(bucket); }
  std::int64_t applied(BucketId bucket) const { return applied_.at(bucket); }
  std::int64_t owed(BucketId bucket) const;
  const Engine& engine(int rank) const { return ranks_[static_cast<std::size_t>(rank)].engine; }
  std::uint64_t messages() const { return messages_; }
  const std::vector<Participation>& participations(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].participations;
  }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Rank {
    explicit Rank(const Engine::Options& options) : engine(options) {}
    Engine engine;
    std::size_t at = 0;  // in the whole program
    std::optional<Slot> blockedIn;
    Slot issued = 0;
    Slot told = 0;  // complete slots that the engine was told of
    std::map<BucketId, std::int64_t> residual;
    std::map<Slot, std::uint32_t> participants;  // of slots that were filled for it
    std::vector<std::int64_t> results;
    std::vector<Participation> participations;
  };
  struct SlotState {
    int issued = 0;
    std::int64_t sum = 0;
    std::uint32_t contributors = 0;  // main threads
    std::optional<SlotOperation> operation;
    int released = 0;  // ranks whose main thread has the result
  };

  SlotOperation operationAt(std::size_t at) const { return options_.program[at % options_.program.size()]; }
  std::size_t length() const { return options_.program.size() * static_cast<std::size_t>(options_.steps); }
  bool happen();
  void arrive(int rank);
  std::int64_t gradient(int rank, std::size_t at);
  void issue(int rank, Slot slot, const SlotOperation& operation, std::int64_t contribution, bool byProxy);
  void checkParticipants(int rank, Slot slot, std::uint32_t participants);
  void fill(int rank);
  void complete(int rank);
  void tell(int rank);
  void post(std::function<void()> message);
  void carry(const std::vector<Coordinator::Order>& orders);
  bool isComplete(Slot slot) const;
  std::int64_t takeResidual(Rank& rank, BucketId bucket);

  Options options_;
  std::mt19937 random_;
  Instant now_ = fromNanoseconds(1'000'000'000);
  Coordinator coordinator_;
  std::vector<Rank> ranks_;
  std::map<Slot, SlotState> slots_;
  std::vector<std::function<void()>> network_;
  std::map<BucketId, std::int64_t> brought_;
  std::map<BucketId, std::int64_t> applied_;
  std::uint64_t messages_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace straggler
