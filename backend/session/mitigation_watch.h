// MitigationWatch: asks a source what mitigation did on this rank, and passes on what changed.
//
// The source is a stranger here: it is called without a lock held, and one that throws is asked no more, with one line.
//
// Thread safety: setSource() may be called from any thread; news() is the monitor's thread alone. A source may still be
// asked once, on that thread, while or just after another takes its place, so it owns what it reads; that thread may be
// the one that destroys it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backend/base/mutex.h"
#include "backend/exchange/messages.h"

namespace straggler {

// What mitigation tells of itself; called by the monitor's thread after a window closed and at the end. Must not block.
using MitigationSource = std::function<std::optional<MitigationSummary>()>;

class MitigationWatch {
 public:
  // An empty one: there is nothing to ask. What was told stays told.
  void setSource(MitigationSource source);

  // The summary, if it is another than the last. `complain` is called if the source throws.
  std::optional<MitigationSummary> news(const std::function<void(const std::string&)>& complain);

 private:
  std::optional<MitigationSummary> ask(const std::function<void(const std::string&)>& complain);

  std::optional<MitigationSummary> told_;

  Mutex mutex_;
  std::shared_ptr<const MitigationSource> source_ GUARDED_BY(mutex_);
};

}  // namespace straggler
