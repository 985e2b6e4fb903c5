#include "backend/detect/verdict.h"

#include <set>

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(Verdict, everyKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const VerdictKind kind :
       {VerdictKind::kNone, VerdictKind::kStraggler, VerdictKind::kImbalance, VerdictKind::kNetwork,
        VerdictKind::kJobWide, VerdictKind::kCleared, VerdictKind::kAbstain}) {
    names.insert(toString(kind));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"none", "straggler", "imbalance", "network", "job_wide", "cleared",
                                               "abstain"}));
}

TEST(Verdict, saysNothingUntilItIsMade) {
  EXPECT_EQ(Verdict().kind, VerdictKind::kAbstain);
  EXPECT_TRUE(Verdict().ranks.empty());
}

}  // namespace
}  // namespace straggler
