#include "backend/detect/arrival_table.h"

#include <algorithm>
#include <set>

namespace straggler {
namespace {

void keepFirstWords(std::vector<RankSample>& samples) {
  std::vector<int> ranks;
  ranks.reserve(samples.size());
  for (const auto& sample : samples) {
    ranks.push_back(sample.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
    std::set<int> seen;
    std::erase_if(samples, [&seen](const auto& sample) { return !seen.insert(sample.rank).second; });
  }
}

}  // namespace

std::optional<std::vector<RankSample>> ArrivalTable::add(int rank, const ArrivalSample& sample) {
  auto& samples = waiting_[sample.key];
  if (samples.empty()) {
    order_.push_back(sample.key);
  }
  samples.push_back({rank, sample.arrival, sample.completed, sample.polled});
  ++samples_;

  // The group's size may become known only after its first samples came in.
  const auto size = groupSizes_.find(sample.key.group);
  std::optional<std::vector<RankSample>> complete;
  if (size != groupSizes_.end() && samples.size() >= size->second) {
    samples_ -= samples.size();
    keepFirstWords(samples);
    if (samples.size() >= size->second) {
      complete = std::move(samples);
      waiting_.erase(sample.key);
    } else {
      samples_ += samples.size();
    }
  }
  while (!order_.empty() && !waiting_.contains(order_.front())) {
    order_.pop_front();  // complete
  }
  while (samples_ > kMaxSamples || order_.size() > kMaxSamples) {
    const auto oldest = waiting_.find(order_.front());
    order_.pop_front();
    if (oldest != waiting_.end()) {
      samples_ -= oldest->second.size();
      waiting_.erase(oldest);
      ++givenUp_;
    }
  }
  return complete;
}

}  // namespace straggler
