// SyntheticRun: the frames of a job that never ran, from a description of its noise and of one delay. Seeded, so it repeats;
// cheap enough for thousands of ranks.
//
// It lies with the detector, because it is the detector's other source of windows beside records (`straggler rescore
// --synthetic`), is made of nothing but what the detector takes, and its noise is fitted by the detector's own measures
// (noise_fit.h). It is no fake of the tests: these build what they need by hand, so that neither checks itself.
//
// Self time of rank r in step t of window k, in ms:
//
//   base + spread_r + slow_(r,k) + noise_(r,t) + pause_(r,t) + delay
//
// spread and noise are normal; slow is normal and fades with exp(-1 / slow_windows) a window; a pause comes in a share of the
// steps, and its length is Pareto's: at least pause_ms, longer than x with probability (pause_ms / x)^pause_tail.
// All ranks end a step together, transfer_ms after the slowest arrives. Of the evidence only input is told; the rest is not
// known.
//
//   delay   who            what, from step `from_step` on
//   D1      rank           ms longer each step
//   D3      rank           the same, inside its data loader
//   D6      0              10 steps' time longer every 20 steps
//   D7      all            30 % longer
//   D8      another each   ms longer, in turn
//   D9      all            200 ms longer in one of 100 steps, each rank in its own
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/base/fields.h"
#include "backend/exchange/messages.h"

namespace straggler {

enum class Delay : std::uint8_t { kNone, kD1, kD3, kD6, kD7, kD8, kD9 };

struct SyntheticSpec {
  std::int64_t ranks = 4;
  std::int64_t windows = 50;
  std::int64_t steps = 10;  // a window
  std::int64_t seed = 1;
  double baseMs = 30;
  double transferMs = 1;
  double noiseMs = 0.5;
  double spreadMs = 0;
  double slowMs = 0;
  double slowWindows = 3;
  double pauseShare = 0;
  double pauseMs = 5;
  double pauseTail = 2;
  Delay delay = Delay::kNone;
  double delayMs = 2;
  std::int64_t rank = 0;
  std::int64_t fromStep = 100;
};

std::span<const Field<SyntheticSpec>> syntheticFields();

// "ranks=8192,windows=50,delay=D1,ms=2"; what is not said is as in `spec`. Throws FieldError.
SyntheticSpec parseSynthetic(std::string_view text, SyntheticSpec spec = {});
// All of it, so that it can be said again.
std::string toText(const SyntheticSpec& spec);

class SyntheticRun {
 public:
  // Throws FieldError where parts of the description do not fit each other.
  explicit SyntheticRun(const SyntheticSpec& spec);

  std::vector<int> members() const;

  // Who the ranks are, window after window, then their ends; nothing when all is told.
  std::optional<std::vector<Frame>> next();

 private:
  std::vector<Frame> hellos() const;
  std::vector<Frame> window();
  std::vector<Frame> ends() const;
  StepWindow windowOf(std::size_t rank, std::vector<double>& slowestMs);
  double selfMs(std::size_t rank);  // without a delay
  double delayMs(std::int64_t rank, std::int64_t step);
  double pauseMs();

  SyntheticSpec spec_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<double> spreadMs_;  // by rank
  std::vector<double> slowMs_;    // by rank, of the running window
  std::int64_t told_ = -1;        // windows; -1: not even who the ranks are
};

}  // namespace straggler
