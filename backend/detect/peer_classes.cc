#include "backend/detect/peer_classes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

namespace straggler {
namespace {

using Positions = std::vector<std::size_t>;
using Role = std::set<std::pair<OpKind, std::size_t>>;  // kinds, by size of group

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), std::size_t{0}); }
  std::size_t find(std::size_t i) {
    while (parents_[i] != i) {
      i = parents_[i] = parents_[parents_[i]];
    }
    return i;
  }
  // The smaller one leads.
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parents_;
};

class Classes {
 public:
  Classes(const std::vector<int>& ranks, const std::vector<std::optional<RankProgram>>& programs,
          const std::map<GroupId, GroupInfo>& groups)
      : ranks_(ranks), programs_(programs), groups_(groups), roles_(ranks.size()), parents_(ranks.size()) {}

  std::vector<PeerClass> find() {
    readPrograms();
    for (const auto& [group, users] : users_) {
      if (!spansStages(groups_.at(group))) {
        joinAlike(users);
      }
    }
    std::map<std::size_t, PeerClass> classes;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      classes[parents_.find(i)].push_back(ranks_[i]);
    }
    std::vector<PeerClass> all;
    for (auto& [first, members] : classes) {
      all.push_back(std::move(members));
    }
    return all;
  }

 private:
  void readPrograms() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      for (const auto& use : programs_[i]->uses) {
        const auto group = groups_.find(use.group);
        if (group == groups_.end() || group->second.ranks.size() < 2) {
          continue;
        }
        roles_[i].insert({use.kind, group->second.ranks.size()});
        if (!isNumbered(use.kind)) {
          pipelines_.insert(use.group);
        } else if (Positions& users = users_[use.group]; users.empty() || users.back() != i) {
          users.push_back(i);
        }
      }
    }
    for (const GroupId pipeline : pipelines_) {
      pipelinesOf_[groups_.at(pipeline).ranks.front()].push_back(pipeline);
    }
  }

  bool spansStages(const GroupInfo& group) const {
    const std::set<int> members(group.ranks.begin(), group.ranks.end());
    const auto isWithin = [&](GroupId pipeline) {
      const auto& stages = groups_.at(pipeline).ranks;
      return std::all_of(stages.begin(), stages.end(), [&](int rank) { return members.contains(rank); });
    };
    return std::any_of(group.ranks.begin(), group.ranks.end(), [&](int rank) {
      const auto first = pipelinesOf_.find(rank);
      return first != pipelinesOf_.end() && std::any_of(first->second.begin(), first->second.end(), isWithin);
    });
  }

  void joinAlike(const Positions& users) {
    std::map<Role, std::size_t> firsts;
    for (const std::size_t user : users) {
      parents_.join(firsts.try_emplace(roles_[user], user).first->second, user);
    }
  }

  const std::vector<int>& ranks_;
  const std::vector<std::optional<RankProgram>>& programs_;
  const std::map<GroupId, GroupInfo>& groups_;
  std::vector<Role> roles_;
  std::map<GroupId, Positions> users_;               // of collectives
  std::set<GroupId> pipelines_;                      // whose ranks send to each other
  std::map<int, std::vector<GroupId>> pipelinesOf_;  // by first rank
  UnionFind parents_;
};

}  // namespace

std::optional<std::vector<PeerClass>> peerClasses(const std::vector<int>& ranks,
                                                  const std::vector<std::optional<RankProgram>>& programs,
                                                  const std::map<GroupId, GroupInfo>& groups) {
  const bool told = std::all_of(programs.begin(), programs.end(), [](const auto& program) { return program; });
  const bool anyUse = std::any_of(programs.begin(), programs.end(),
                                  [](const auto& program) { return program && !program->uses.empty(); });
  if (!told || !anyUse) {
    return std::nullopt;
  }
  for (const auto& program : programs) {
    for (const auto& use : program->uses) {
      if (!groups.contains(use.group)) {
        return std::nullopt;
      }
    }
  }
  return Classes(ranks, programs, groups).find();
}

bool isPipeline(const std::vector<std::optional<RankProgram>>& programs) {
  return std::any_of(programs.begin(), programs.end(), [](const auto& program) {
    return program && std::any_of(program->uses.begin(), program->uses.end(),
                                  [](const OperationUse& use) { return !isNumbered(use.kind); });
  });
}

}  // namespace straggler
