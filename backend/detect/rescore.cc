#include "backend/detect/rescore.h"

#include <algorithm>
#include <utility>

namespace straggler {

Rescore::Rescore(std::vector<int> ranks, const Options& options)
    : ranks_(std::move(ranks)), steps_(options.steps), model_(ranks_, options.steps, options.detector) {
  if (options.steps != options.recordedSteps) {
    regrouping_.emplace(ranks_.size(), options.steps);
  }
}

void Rescore::apply(const Frame& frame) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), frame.rank);
  if (!regrouping_ || place == ranks_.end() || *place != frame.rank) {
    feed(frame);
    return;
  }
  Frame regrouped{frame.rank, {}};
  for (const auto& message : frame.messages) {
    if (const auto* window = std::get_if<StepWindow>(&message)) {
      for (auto& complete : regrouping_->add(static_cast<std::size_t>(place - ranks_.begin()), *window)) {
        regrouped.messages.emplace_back(std::move(complete));
      }
    } else {
      regrouped.messages.push_back(message);
    }
  }
  feed(regrouped);
}

void Rescore::finish() {
  for (std::size_t i = 0; regrouping_ && i < ranks_.size(); ++i) {
    if (auto last = regrouping_->last(i)) {
      feed({ranks_[i], {std::move(*last)}});
    }
  }
}

void Rescore::feed(const Frame& frame) {
  model_.apply(frame);
  for (auto& event : model_.takeEvents()) {
    events_.push_back(std::move(event));
  }
}

}  // namespace straggler
