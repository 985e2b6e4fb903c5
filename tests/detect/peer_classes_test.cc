#include "backend/detect/peer_classes.h"

#include <string>

#include <gtest/gtest.h>

namespace straggler {
namespace {

using Classes = std::vector<PeerClass>;
using Kinds = std::vector<OpKind>;

// A job of `ranks` ranks; each test says what groups there are, and who calls what in them.
class PeerClassesTest : public testing::Test {
 protected:
  void begin(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_.push_back(rank);
    }
    programs_.assign(ranks_.size(), RankProgram{});
  }
  // A group in which all members call operations of these kinds in every window.
  void group(const std::string& name, std::vector<int> members, const Kinds& kinds) {
    const GroupInfo info{name, "", "gloo", std::move(members)};
    groups_[info.id()] = info;
    for (const int rank : info.ranks) {
      for (const OpKind kind : kinds) {
        use(rank, info.id(), kind);
      }
    }
  }
  void use(int rank, GroupId group, OpKind kind) {
    programs_[static_cast<std::size_t>(rank)]->uses.push_back({group, kind});
  }
  std::optional<Classes> classes() const { return peerClasses(ranks_, programs_, groups_); }

  std::vector<int> ranks_;
  std::vector<std::optional<RankProgram>> programs_;
  std::map<GroupId, GroupInfo> groups_;
};

TEST_F(PeerClassesTest, ranksOfADataParallelJobAreAllPeers) {
  begin(4);
  group("world", {0, 1, 2, 3}, {OpKind::kAllReduce, OpKind::kBroadcast});
  EXPECT_EQ(classes(), (Classes{{0, 1, 2, 3}}));
  EXPECT_FALSE(isPipeline(programs_));
}

TEST_F(PeerClassesTest, ranksOfTensorByDataParallelAreAllPeersThoughNoGroupThatIsUsedHoldsThemAll) {
  begin(4);
  group("world", {0, 1, 2, 3}, {});
  group("tp0", {0, 1}, {OpKind::kAllReduce});
  group("tp1", {2, 3}, {OpKind::kAllReduce});
  group("dp0", {0, 2}, {OpKind::kAllReduce});
  group("dp1", {1, 3}, {OpKind::kAllReduce});
  EXPECT_EQ(classes(), (Classes{{0, 1, 2, 3}}));
}

TEST_F(PeerClassesTest, ranksOfOneStageArePeers) {
  begin(8);
  group("world", {0, 1, 2, 3, 4, 5, 6, 7}, {OpKind::kSend, OpKind::kRecv});
  for (int stage = 0; stage < 4; ++stage) {
    group("dp" + std::to_string(stage), {stage, stage + 4}, {OpKind::kAllReduce});
  }
  EXPECT_EQ(classes(), (Classes{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_TRUE(isPipeline(programs_));
}

TEST_F(PeerClassesTest, stagesThatShareACollectiveAreNoPeers) {
  begin(4);
  group("world", {0, 1, 2, 3}, {OpKind::kAllReduce});  // the norm of all gradients, say
  group("pp0", {0, 1}, {OpKind::kSend, OpKind::kRecv});
  group("pp1", {2, 3}, {OpKind::kSend, OpKind::kRecv});
  EXPECT_EQ(classes(), (Classes{{0}, {1}, {2}, {3}}));
  group("dp0", {0, 2}, {OpKind::kReduceScatter});
  group("dp1", {1, 3}, {OpKind::kReduceScatter});
  EXPECT_EQ(classes(), (Classes{{0, 2}, {1, 3}}));
}

TEST_F(PeerClassesTest, stagesWithoutReplicasAreAlone) {
  begin(4);
  group("world", {0, 1, 2, 3}, {OpKind::kBatchedP2P});
  EXPECT_EQ(classes(), (Classes{{0}, {1}, {2}, {3}}));
}

TEST_F(PeerClassesTest, ranksThatShareTheWorldAndDoDifferentThingsAreNoPeers) {
  begin(6);
  group("world", {0, 1, 2, 3, 4, 5}, {OpKind::kBroadcast});
  group("trainers", {0, 1, 2, 3}, {OpKind::kAllReduce});
  group("actors", {4, 5}, {OpKind::kAllGather});
  EXPECT_EQ(classes(), (Classes{{0, 1, 2, 3}, {4, 5}}));
}

TEST_F(PeerClassesTest, groupsOfOneRankCountForNothing) {
  begin(3);
  group("world", {0, 1, 2}, {OpKind::kAllReduce});
  group("alone", {0}, {OpKind::kAllReduce, OpKind::kSend});
  EXPECT_EQ(classes(), (Classes{{0, 1, 2}}));
}

TEST_F(PeerClassesTest, groupThatIsMadeLaterMakesPeersOnceItIsUsed) {
  begin(2);
  group("world", {0, 1}, {OpKind::kSend});
  EXPECT_EQ(classes(), (Classes{{0}, {1}}));
  group("later", {0, 1}, {});
  EXPECT_EQ(classes(), (Classes{{0}, {1}}));
  programs_.assign(2, RankProgram{});
  use(0, groupId("later"), OpKind::kAllReduce);
  use(1, groupId("later"), OpKind::kAllReduce);
  EXPECT_EQ(classes(), (Classes{{0, 1}})) << "the ranks do not send any more";
}

TEST_F(PeerClassesTest, nothingIsSaidBeforeAllHaveToldAndEveryGroupIsKnown) {
  begin(2);
  EXPECT_EQ(classes(), std::nullopt) << "no operation";
  group("world", {0, 1}, {OpKind::kAllReduce});
  use(0, groupId("unknown"), OpKind::kAllReduce);
  EXPECT_EQ(classes(), std::nullopt);
  groups_[groupId("unknown")] = {"unknown", "", "gloo", {0}};
  EXPECT_EQ(classes(), (Classes{{0, 1}}));
  programs_[1].reset();
  EXPECT_EQ(classes(), std::nullopt);
}

TEST_F(PeerClassesTest, positionsAreNotRanks) {
  ranks_ = {3, 5, 9};
  programs_.assign(3, RankProgram{});
  const GroupInfo pair{"pair", "", "gloo", {5, 9}};
  groups_[pair.id()] = pair;
  programs_[1]->uses = programs_[2]->uses = {{pair.id(), OpKind::kAllReduce}};
  EXPECT_EQ(classes(), (Classes{{3}, {5, 9}}));
}

}  // namespace
}  // namespace straggler
