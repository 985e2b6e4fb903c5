#include "backend/detect/job_verdict.h"

#include <algorithm>

namespace straggler {
namespace {

int weight(const Verdict& verdict) {
  switch (verdict.kind) {
    case VerdictKind::kStraggler:
      return 6;
    case VerdictKind::kAbstain:
      return 5;
    case VerdictKind::kJobWide:
      return 4;
    case VerdictKind::kNetwork:
      return 3;
    case VerdictKind::kImbalance:
      return 2;
    case VerdictKind::kCleared:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

Verdict jobVerdict(const std::vector<const Verdict*>& ofClasses, const std::vector<Verdict>& ofJob) {
  std::vector<const Verdict*> all = ofClasses;
  for (const auto& verdict : ofJob) {
    all.push_back(&verdict);
  }
  std::stable_sort(all.begin(), all.end(), [](const Verdict* a, const Verdict* b) {
    const auto rank = [](const Verdict* v) { return std::pair(weight(*v), v->excessMs.value_or(0)); };
    return rank(a) > rank(b);
  });
  Verdict made = *all.front();
  for (std::size_t i = 1; i < all.size() && made.kind == VerdictKind::kStraggler; ++i) {
    if (all[i]->kind == VerdictKind::kStraggler) {
      made.ranks.insert(made.ranks.end(), all[i]->ranks.begin(), all[i]->ranks.end());
    }
  }
  return made;
}

}  // namespace straggler
