#include "backend/session/mitigation_watch.h"

#include <exception>
#include <utility>

namespace straggler {

void MitigationWatch::setSource(MitigationSource source) {
  auto shared = source ? std::make_shared<const MitigationSource>(std::move(source)) : nullptr;
  {
    const MutexLock lock(mutex_);
    source_.swap(shared);
  }
  // The one before goes here, without the lock: what it owns may be a stranger's.
}

std::optional<MitigationSummary> MitigationWatch::news(const std::function<void(const std::string&)>& complain) {
  auto summary = ask(complain);
  if (!summary || summary == told_) {
    return std::nullopt;
  }
  told_ = summary;
  return summary;
}

std::optional<MitigationSummary> MitigationWatch::ask(const std::function<void(const std::string&)>& complain) {
  std::shared_ptr<const MitigationSource> source;
  {
    const MutexLock lock(mutex_);
    source = source_;
  }
  try {
    return source ? (*source)() : std::nullopt;
  } catch (const std::exception& error) {
    complain(std::string("what mitigation does is not reported any more: ") + error.what());
  }
  const MutexLock lock(mutex_);
  if (source_ == source) {
    source_ = nullptr;
  }
  return std::nullopt;
}

}  // namespace straggler
