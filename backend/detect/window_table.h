// WindowTable: brings the ranks' windows of the same steps together, as rows that can be judged.
//
// A row is handed over once every rank has told its window. A rank tells its windows in order, so when a row is complete,
// those before it never will be, and are passed over: some rank lost or thinned a window. A rank that is silent would
// hold everything up; so once the others are `patience` windows further than it ever was, rows are handed over without
// it: it is missing there, not fast.
//
//   patience 8, ranks 0, 1, 2; rank 2 told windows up to 30. When rank 0 or 1 tells window 39, row 31 goes out: {0, 1, -}
//
// Bounded: when too many rows wait, the oldest is passed over. What comes in after its row is gone is late, and counted.
// It knows no clock: what replays a recorded job gets the same rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "backend/detect/os_evidence.h"
#include "backend/exchange/messages.h"

namespace straggler {

// One rank's share in a window; means are over its steps.
struct RankWindow {
  std::vector<double> selfMs;  // by step
  double stepMs = 0;           // mean length of a step, waits included
  std::optional<double> inputMs{};
  std::optional<double> cpuMs{};
  std::optional<double> runDelayMs{};
  OsEvidence os{};
};

// A window of all ranks, by position of the rank in the session.
struct WindowRow {
  std::int64_t firstStep = 0;
  std::vector<std::optional<RankWindow>> ranks;
  std::size_t told = 0;

  bool complete() const { return told == ranks.size(); }
};

class WindowTable {
 public:
  static constexpr std::int64_t kPatience = 8;  // windows

  WindowTable(std::size_t ranks, std::int64_t stepsPerWindow) : lastTold_(ranks, -1), stepsPerWindow_(stepsPerWindow) {}

  // Takes a rank's window, which begins with step `firstStep`; gives the rows that can be judged now, oldest first.
  std::vector<WindowRow> add(std::size_t position, std::int64_t firstStep, RankWindow window);

  // A rank that sends `windows` of them at once is not silent before it could have sent twice as many. Patience never
  // shrinks.
  void sentAtOnce(std::int64_t windows);

  std::uint64_t passedOver() const { return passedOver_; }  // rows
  std::uint64_t late() const { return late_; }              // windows

 private:
  void passOver();
  void handOverBefore(std::int64_t index, std::vector<WindowRow>& ready);

  std::vector<std::int64_t> lastTold_;  // index of the last window of each rank; -1: none
  std::int64_t stepsPerWindow_;
  std::int64_t patience_ = kPatience;
  std::int64_t nextIndex_ = 0;                 // rows before it are gone
  std::map<std::int64_t, WindowRow> waiting_;  // by index
  std::uint64_t passedOver_ = 0;
  std::uint64_t late_ = 0;
};

}  // namespace straggler
