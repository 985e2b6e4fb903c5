#include "tests/fakes/simulated_group.h"

#include <utility>

namespace straggler {
namespace {

constexpr Duration kGrace = std::chrono::milliseconds(5);
constexpr Duration kTick = std::chrono::milliseconds(1);

}  // namespace

SimulatedGroup::SimulatedGroup(Options options)
    : options_(std::move(options)),
      random_(options_.seed),
      coordinator_(options_.ranks, options_.quorum, options_.mode) {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Engine::Options engine;
    engine.rank = rank;
    engine.mode = options_.mode;
    engine.staleness = options_.staleness;
    engine.grace = kGrace;
    if (!options_.scripts.empty()) {
      engine.script = options_.scripts[static_cast<std::size_t>(rank)];
    }
    ranks_.emplace_back(engine);
  }
  for (const auto& operation : options_.program) {
    if (operation.bucket) {
      brought_[*operation.bucket] = applied_[*operation.bucket] = 0;
    }
  }
}

bool SimulatedGroup::run() {
  for (std::size_t turn = 0; turn < 200'000; ++turn) {
    bool ended = true;
    for (const Rank& rank : ranks_) {
      ended = ended && rank.at == length() && !rank.blockedIn;
    }
    if (ended || !faults_.empty()) {
      return ended;
    }
    happen();
  }
  faults_.push_back("the ranks do not come to an end");
  return false;
}

// One thing happens, at one rank or in the network. Some ranks are slower than others for a while: the same draw is theirs.
bool SimulatedGroup::happen() {
  now_ += kTick / 8;
  const auto draw = [this](int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); };
  const int rank = draw(options_.ranks);
  Rank& chosen = ranks_[static_cast<std::size_t>(rank)];
  switch (draw(8)) {
    case 0:
    case 1:
      if (!network_.empty()) {
        const auto place = network_.begin() + draw(static_cast<int>(network_.size()));
        const auto message = std::move(*place);
        network_.erase(place);
        message();
      }
      return true;
    case 2:
    case 3:
      tell(rank);
      return true;
    case 4:
      complete(rank);
      return true;
    case 5:
      if (options_.mayStandDown && draw(400) == 0) {
        chosen.engine.standDown();
      }
      return true;
    default:
      // A stall now and then: this rank's main thread sits out many draws.
      if ((static_cast<std::uint32_t>(chosen.at) * 2654435761U + static_cast<std::uint32_t>(rank) + options_.seed) %
                  5 ==
              0 &&
          draw(40) != 0) {
        return true;
      }
      arrive(rank);
      return true;
  }
}

void SimulatedGroup::arrive(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  if (rank.blockedIn || rank.at == length()) {
    return;
  }
  const SlotOperation operation = operationAt(rank.at);
  if (options_.flushBefore >= 0 &&
      rank.at == static_cast<std::size_t>(options_.flushBefore) * options_.program.size()) {
    rank.engine.flush();
  }
  const Engine::Arrival arrival = rank.engine.arrive(operation, now_);
  if (std::holds_alternative<Engine::Wait>(arrival)) {
    return;
  }
  const std::int64_t gradient = operation.bucket ? this->gradient(number, rank.at) : 0;
  if (operation.bucket) {
    brought_[*operation.bucket] += gradient;
  }
  if (const auto* order = std::get_if<Engine::Issue>(&arrival)) {
    std::int64_t contribution = operation.kind == SlotOperation::Kind::kBroadcast
                                    ? (operation.root == number ? static_cast<std::int64_t>(rank.at) : 0)
                                    : gradient;
    if (order->withResidual) {
      contribution += takeResidual(rank, *operation.bucket);
    }
    if (!operation.bucket && operation.kind == SlotOperation::Kind::kAllReduce) {
      contribution = static_cast<std::int64_t>(rank.at);
    }
    issue(number, order->slot, operation, contribution, false);
    rank.blockedIn = order->slot;
  } else if (const auto* taken = std::get_if<Engine::Take>(&arrival)) {
    if (taken->owes) {
      rank.residual[taken->bucket] += gradient;
    }
    rank.blockedIn = taken->slot;
  } else {
    faults_.push_back("rank " + std::to_string(number) + ": " + std::get<Engine::Fail>(arrival).reason);
  }
  fill(number);
}

// One that depends on rank and slot alone, where runs are compared.
std::int64_t SimulatedGroup::gradient(int rank, std::size_t at) {
  std::uniform_int_distribution<std::int64_t> values(1, 1000);
  if (!options_.gradientSeed) {
    return values(random_);
  }
  std::mt19937 own(*options_.gradientSeed * 1009U + static_cast<std::uint32_t>(rank) * 101U +
                   static_cast<std::uint32_t>(at));
  return values(own);
}

void SimulatedGroup::issue(int number, Slot slot, const SlotOperation& operation, std::int64_t contribution,
                           bool byProxy) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  if (slot != rank.issued) {
    faults_.push_back("rank " + std::to_string(number) + " issues slot " + std::to_string(slot) + " after " +
                      std::to_string(rank.issued) + " slots");
  }
  ++rank.issued;
  SlotState& state = slots_[slot];
  if (state.operation && !operation.isCallOf(*state.operation)) {
    faults_.push_back("ranks issue different operations in slot " + std::to_string(slot));
  }
  state.operation = operation;
  state.sum += contribution;
  state.contributors += byProxy ? 0 : 1;
  if (++state.issued == options_.ranks && operation.bucket) {
    applied_[*operation.bucket] += state.sum;
  }
}

void SimulatedGroup::fill(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  while (const auto order = rank.engine.nextFill(now_)) {
    const std::int64_t contribution = order->withResidual ? takeResidual(rank, *order->operation.bucket) : 0;
    issue(number, order->slot, order->operation, contribution, true);
    rank.participants[order->slot] = order->participants;
  }
  for (const auto& participation : rank.engine.takeParticipations()) {
    rank.participations.push_back(participation);
  }
}

bool SimulatedGroup::isComplete(Slot slot) const {
  const auto state = slots_.find(slot);
  return state != slots_.end() && state->second.issued == options_.ranks;
}

void SimulatedGroup::complete(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  // A root's broadcast is complete as soon as it is issued.
  const auto done = [&](Slot slot) {
    const auto state = slots_.find(slot);
    return isComplete(slot) || (state != slots_.end() && state->second.operation &&
                                state->second.operation->kind == SlotOperation::Kind::kBroadcast &&
                                state->second.operation->root == number && slot < rank.issued);
  };
  while (done(rank.told)) {
    rank.engine.completed(rank.told++, now_);
  }
  if (rank.blockedIn && *rank.blockedIn < rank.told) {
    // Of a root that runs ahead, the sum is not known yet, but what it sent is all there is.
    rank.results.push_back(slots_[*rank.blockedIn].sum);
    const auto filled = rank.participants.find(*rank.blockedIn);
    checkParticipants(number, *rank.blockedIn,
                      filled == rank.participants.end() ? rank.engine.participantsOf(*rank.blockedIn) : filled->second);
    rank.blockedIn.reset();
    ++rank.at;
  }
}

// In drop mode every rank has to know how many gradients a sum holds.
void SimulatedGroup::checkParticipants(int number, Slot slot, std::uint32_t participants) {
  const SlotState& state = slots_[slot];
  if (options_.mode == MitigationMode::kDrop && state.operation->bucket &&
      (participants == 0 ? static_cast<std::uint32_t>(options_.ranks) : participants) != state.contributors) {
    faults_.push_back("rank " + std::to_string(number) + " takes " + std::to_string(participants) +
                      " to have taken part in slot " + std::to_string(slot) + ", where " +
                      std::to_string(state.contributors) + " did");
  }
}

void SimulatedGroup::tell(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  const Engine::Tell told = rank.engine.tell(now_);
  if (told.pending) {
    post([this, report = *told.pending] { carry(coordinator_.hear(report, now_)); });
  }
  if (told.refusal) {
    post([this, refusal = *told.refusal] { carry(coordinator_.hear(refusal, now_)); });
  }
  for (const auto& reservation : told.reservations) {
    post([this, reservation] { carry(coordinator_.hear(reservation, now_)); });
  }
  for (const auto& acknowledgement : told.acknowledgements) {
    post([this, acknowledgement] { carry(coordinator_.hear(acknowledgement, now_)); });
  }
  if (told.caughtUp) {
    post([this, caughtUp = *told.caughtUp] { carry(coordinator_.hear(caughtUp, now_)); });
  }
}

void SimulatedGroup::post(std::function<void()> message) {
  ++messages_;
  std::uniform_real_distribution<double> share(0, 1);
  if (share(random_) < options_.repeated) {
    network_.push_back(message);
  }
  if (share(random_) >= options_.lost) {
    network_.push_back(std::move(message));
  }
}

void SimulatedGroup::carry(const std::vector<Coordinator::Order>& orders) {
  for (const auto& order : orders) {
    post([this, order] {
      Engine& engine = ranks_[static_cast<std::size_t>(order.rank)].engine;
      std::visit([&engine](const auto& message) { engine.heard(message); }, order.message);
      fill(order.rank);
    });
  }
}

std::int64_t SimulatedGroup::takeResidual(Rank& rank, BucketId bucket) {
  return std::exchange(rank.residual[bucket], 0);
}

std::int64_t SimulatedGroup::owed(BucketId bucket) const {
  std::int64_t sum = 0;
  for (const Rank& rank : ranks_) {
    const auto residual = rank.residual.find(bucket);
    sum += residual == rank.residual.end() ? 0 : residual->second;
  }
  return sum;
}

}  // namespace straggler
