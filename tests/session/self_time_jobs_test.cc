// Jobs of random programs on simulated time: from every rank's operations, by its own monitor, to the verdict. Whatever groups
// there are and in whichever order they are called, a victim is never named, and the culprit always is.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "backend/detect/job_model.h"
#include "tests/fakes/ranks.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

struct Call {
  std::size_t group = 0;
  bool asynchronous = false;  // waited for at the end of the step
  std::uint64_t bytes = 0;
};

// Groups and the calls of a step, drawn from a seed. The calls are in one order on all ranks, so that they end.
class RandomJob {
 public:
  explicit RandomJob(std::uint32_t seed) : random_(seed), ranks_(draw(3, 6)) {
    std::vector<int> all(static_cast<std::size_t>(ranks_));
    std::iota(all.begin(), all.end(), 0);
    groups_.push_back({"world", "", "gloo", all});
    for (int i = draw(1, 4); i > 0; --i) {
      std::vector<int> members = all;
      std::shuffle(members.begin(), members.end(), random_);
      members.resize(static_cast<std::size_t>(draw(2, ranks_)));
      std::sort(members.begin(), members.end());
      groups_.push_back({"group" + std::to_string(i), "", "gloo", members});
    }
    while (calls_.size() < 4 || !everyRankCalls() || !peersCallAlike()) {
      if (calls_.size() > 8) {
        calls_.clear();
      }
      calls_.push_back({static_cast<std::size_t>(draw(draw(0, 1), static_cast<int>(groups_.size()) - 1)),
                        draw(0, 1) == 1, static_cast<std::uint64_t>(draw(1, 1 << 20))});
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      simulated_.push_back(std::make_unique<SimulatedRank>(SimulatedRank::Options{.rank = rank, .group = groups_[0]}));
      for (std::size_t i = 1; i < groups_.size(); ++i) {
        if (isMember(groups_[i], rank)) {
          simulated_.back()->monitor->addGroup(groups_[i]);
        }
      }
    }
    culprit_ = draw(0, ranks_ - 1);
    lateBefore_ = draw(0, static_cast<int>(callsOf(culprit_)));
  }

  int culprit() const { return culprit_; }
  const std::vector<GroupInfo>& groups() const { return groups_; }

  // `steps` steps, in which the culprit works `extraMs` longer from `from` on. Gives what the root makes of them.
  JobModel run(std::int64_t steps, std::int64_t from, double extraMs) {
    JobModel model(groups_[0].ranks, 10);
    for (std::int64_t step = 0; step < steps; ++step) {
      doStep(step, step >= from ? extraMs : 0);
      for (auto& rank : simulated_) {
        rank->monitor->round(rank->clock.now());
        for (const auto& frame : rank->exchange->sent) {
          model.apply(frame);
        }
        rank->exchange->sent.clear();
      }
    }
    return model;
  }

 private:
  static constexpr double kWorkMs = 25;
  static constexpr double kTransferMs = 1;

  struct Open {
    Ticket ticket = 0;
    Instant completed{};
  };

  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  static bool isMember(const GroupInfo& group, int rank) {
    return std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
  }
  std::size_t callsOf(int rank) const {
    return static_cast<std::size_t>(std::count_if(
        calls_.begin(), calls_.end(), [&](const Call& call) { return isMember(groups_[call.group], rank); }));
  }
  bool everyRankCalls() const {
    return std::all_of(groups_[0].ranks.begin(), groups_[0].ranks.end(), [&](int rank) { return callsOf(rank) > 0; });
  }

  // Ranks that call in groups of the same sizes call as often: they do the same.
  bool peersCallAlike() const {
    std::map<std::set<std::size_t>, std::size_t> callsOfRole;
    return std::all_of(groups_[0].ranks.begin(), groups_[0].ranks.end(), [&](int rank) {
      std::set<std::size_t> role;
      for (const Call& call : calls_) {
        if (isMember(groups_[call.group], rank)) {
          role.insert(groups_[call.group].ranks.size());
        }
      }
      return callsOfRole.try_emplace(role, callsOf(rank)).first->second == callsOf(rank);
    });
  }

  void work(int rank, std::int64_t step, std::size_t part, double extraMs) {
    const double jitter = 0.3 * noise(rank, 100 * step + static_cast<std::int64_t>(part));
    const double late = rank == culprit_ && static_cast<int>(part) == lateBefore_ ? extraMs : 0;
    simulated_[static_cast<std::size_t>(rank)]->clock.advance(
        ms((kWorkMs + jitter) / static_cast<double>(callsOf(rank) + 1) + late));
  }

  void doStep(std::int64_t step, double extraMs) {
    std::vector<std::size_t> parts(simulated_.size(), 0);
    std::vector<std::vector<Open>> open(simulated_.size());
    for (const Call& call : calls_) {
      std::vector<Open> entries;
      Instant last = Instant::min();
      for (const int rank : groups_[call.group].ranks) {
        work(rank, step, parts[static_cast<std::size_t>(rank)]++, extraMs);
        entries.push_back({enter(rank, call), {}});
        last = std::max(last, simulated_[static_cast<std::size_t>(rank)]->clock.now());
      }
      const Instant completed = last + ms(kTransferMs);
      for (std::size_t place = 0; place < entries.size(); ++place) {
        const auto rank = static_cast<std::size_t>(groups_[call.group].ranks[place]);
        simulated_[rank]->recorder->completed(entries[place].ticket, {completed, StampSource::kFuture}, false);
        entries[place].completed = completed;
        if (call.asynchronous) {
          open[rank].push_back(entries[place]);
        } else {
          advanceTo(rank, completed);
        }
      }
    }
    for (std::size_t rank = 0; rank < simulated_.size(); ++rank) {
      work(static_cast<int>(rank), step, parts[rank], extraMs);
      for (const Open& call : open[rank]) {
        simulated_[rank]->recorder->waiting(call.ticket, simulated_[rank]->clock.now());
        advanceTo(rank, call.completed);
        simulated_[rank]->recorder->released(call.ticket, {simulated_[rank]->clock.now(), StampSource::kWait});
      }
    }
  }

  Ticket enter(int rank, const Call& call) {
    SimulatedRank& simulated = *simulated_[static_cast<std::size_t>(rank)];
    Operation operation = entered(OpKind::kAllReduce, 0, groups_[call.group].id());
    operation.arrival = {simulated.clock.now(), StampSource::kHost};
    operation.asynchronous = call.asynchronous;
    operation.bytes = call.bytes;
    const Ticket ticket = simulated.recorder->enter(operation);
    simulated.recorder->issued(ticket, simulated.clock.now());
    return ticket;
  }

  void advanceTo(std::size_t rank, Instant time) {
    FakeClock& clock = simulated_[rank]->clock;
    clock.advance(std::max(Duration::zero(), time - clock.now()));
  }

  std::mt19937 random_;
  int ranks_;
  std::vector<GroupInfo> groups_;
  std::vector<Call> calls_;
  std::vector<std::unique_ptr<SimulatedRank>> simulated_;
  int culprit_ = 0;
  int lateBefore_ = 0;  // which of its calls; the last: the end of the step
};

std::set<int> namedIn(const JobModel& model) {
  std::set<int> named;
  for (const auto& verdict : model.history()) {
    if (verdict.kind == VerdictKind::kStraggler) {
      named.insert(verdict.ranks.begin(), verdict.ranks.end());
    }
  }
  return named;
}

constexpr std::uint32_t kJobs = 60;

TEST(SelfTimeJobs, culpritOfARandomJobIsNamedAndNoVictim) {
  for (std::uint32_t seed = 0; seed < kJobs; ++seed) {
    RandomJob job(seed);
    const JobModel model = job.run(450, 250, 8);
    SCOPED_TRACE(seed);
    EXPECT_EQ(namedIn(model), std::set<int>{job.culprit()}) << model.verdict().reason;
    EXPECT_EQ(model.verdict().ranks, std::vector<int>{job.culprit()});
    EXPECT_NEAR(model.verdict().excessMs.value_or(0), 8, 1);
  }
}

TEST(SelfTimeJobs, nobodyIsNamedInARandomJobThatIsHealthy) {
  for (std::uint32_t seed = 0; seed < kJobs; ++seed) {
    const JobModel model = RandomJob(seed).run(450, 250, 0);
    SCOPED_TRACE(seed);
    for (const auto& verdict : model.history()) {
      // A rank that calls seldom needs longer to find its steps: it is missing until then, and that is said.
      EXPECT_TRUE(verdict.kind == VerdictKind::kAbstain || verdict.kind == VerdictKind::kCleared) << verdict.reason;
    }
  }
}

}  // namespace
}  // namespace straggler
