// ClassModel: one class of peers (peer_classes.h): their windows, brought together, and what is said of them. The ranks of a
// class number their steps alike; those of two classes need not, so each class has a table of windows of its own. A rank
// without peers is compared with its own past (own_past.h), unless it is all of the job.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backend/detect/detector.h"
#include "backend/detect/own_past.h"
#include "backend/detect/peer_classes.h"
#include "backend/detect/stages.h"
#include "backend/detect/transfers.h"
#include "backend/detect/window_table.h"

namespace straggler {

class ClassModel {
 public:
  // `jobRanks`: of the session.
  ClassModel(PeerClass ranks, std::size_t jobRanks, int stepsPerWindow, const DetectorOptions& options);

  const PeerClass& ranks() const { return ranks_; }
  WindowTable& windows() { return windows_; }
  const WindowTable& windows() const { return windows_; }

  // Judges a row of its ranks; `arrivals` by position in the class, `others`: how the other classes do. Gives what is told.
  std::vector<Verdict> judge(const WindowRow& row, std::vector<ArrivalCounts> arrivals,
                             const std::vector<Level>& others);

  // Of the groups whose first rank is in the class.
  Transfers& transfers() { return transfers_; }
  const Transfers& transfers() const { return transfers_; }
  // Whether a window changed that they are slow; told once.
  bool takeTransfersChanged() { return std::exchange(transfersChanged_, false); }

  const DetectorState& detector() const { return detector_; }
  // How long its fastest rank takes; nothing in the first windows.
  const std::optional<Level>& level() const { return level_; }
  // Of the last window judged; of its median rank.
  const StageLoad& load() const { return load_; }
  double stepMs() const { return load_.stepMs; }
  std::int64_t firstStep() const { return firstStep_; }
  std::int64_t lastStep() const { return lastStep_; }

 private:
  bool alone() const { return ranks_.size() == 1 && jobRanks_ > 1; }
  void setLevel(const WindowComparison& window);

  PeerClass ranks_;
  std::size_t jobRanks_;
  std::size_t stepsPerWindow_;
  DetectorOptions options_;
  WindowTable windows_;
  DetectorState detector_;
  Transfers transfers_;
  bool transfersChanged_ = false;
  OwnPast past_;  // of the fastest rank
  std::optional<Level> level_;
  StageLoad load_;
  std::int64_t firstStep_ = 0;
  std::int64_t lastStep_ = 0;
};

}  // namespace straggler
