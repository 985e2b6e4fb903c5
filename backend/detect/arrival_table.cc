#include "backend/detect/arrival_table.h"

#include <algorithm>

namespace straggler {

std::optional<std::vector<RankSample>> ArrivalTable::add(int rank, const ArrivalSample& sample) {
  auto& samples = waiting_[sample.key];
  if (std::any_of(samples.begin(), samples.end(), [rank](const auto& s) { return s.rank == rank; })) {
    return std::nullopt;
  }
  if (samples.empty()) {
    order_.push_back(sample.key);
  }
  samples.push_back({rank, sample.arrival, sample.completed, sample.polled});
  ++samples_;

  // The group's size may become known only after its first samples came in.
  const auto size = groupSizes_.find(sample.key.group);
  std::optional<std::vector<RankSample>> complete;
  if (size != groupSizes_.end() && samples.size() >= size->second) {
    complete = std::move(samples);
    samples_ -= complete->size();
    waiting_.erase(sample.key);
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
