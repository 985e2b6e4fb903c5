// StoreExchange: the session's exchange over a clone of its first group's store. No collective, no port of its own.
//
// Where the store has queues (libuv TCPStore, HashStore), ranks push frames to one queue and the root pops them; a rank
// looks at the queue's length first. Where it has none (FileStore, the legacy TCPStore), each frame has a key of its own,
// which the root removes once it has it; a rank sends one in its turn, and the root looks five times a second. When the
// session ends neither waits: a rank sends what it has, the root looks every few milliseconds. Either way a root that does
// not listen bounds what gathers.
//
//   straggler/<round>/frames           the queue
//   straggler/<round>/frames/<r>/<n>   the frame n of rank r, where there are no queues
//   straggler/<round>/leaving          set when the root listens no longer
//   straggler/<round>/beat             the last beat, while the root asks for clocks; never in a FileStore
//   straggler/<round>/report           what the root published last, behind a counter of 8 bytes
//   straggler/round/<r>                how many sessions rank r has begun on this store
//
// The round tells sessions of one store apart: ranks begin them in the same order, so their counts agree.
//
// A rank looks for a report once a second; with more than 512 ranks less often, so that all of them together ask the server
// 512 times a second (8,192 ranks: every 17 s, 2 MB/s). A FileStore keeps all that is ever set: there only news is published.
//
// Python's stores are not used: they would need the interpreter lock on a thread of ours. The clone has a connection and a
// timeout of its own, a few seconds; the user's store is left as it is.
//
// A server or a file that is gone is noticed at once. A server that stands still (a stopped process) is not: TCPStore reads
// most answers without a time limit, so the calling thread waits for as long, and the session leaves it behind when it ends.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/c10d/store_watch.h"
#include "backend/exchange/exchange.h"
#include "backend/exchange/turns.h"

namespace straggler {

class StoreExchange final : public Exchange {
 public:
  // Throws with a reason if the store cannot be used.
  StoreExchange(const c10::intrusive_ptr<c10d::Store>& store, int rank, const std::vector<int>& ranks);

  Sent send(std::span<const std::uint8_t> bytes) noexcept override;
  bool rootLeaving() noexcept override;
  std::string lastError() const override;
  void ending() noexcept override {
    turns_.end();
    lookPeriod_ = kEndingLookPeriod;
  }
  std::optional<std::vector<std::uint8_t>> receive() noexcept override;
  void announceLeaving() noexcept override;
  void publish(std::span<const std::uint8_t> bytes, Publication publication) noexcept override;
  std::optional<std::vector<std::uint8_t>> published() noexcept override;
  void showBeat(std::span<const std::uint8_t> bytes) noexcept override;
  std::optional<std::vector<std::uint8_t>> lookAtBeat() noexcept override;

 private:
  static constexpr Duration kLookPeriod = std::chrono::milliseconds(200);
  static constexpr Duration kEndingLookPeriod = std::chrono::milliseconds(5);

  std::string key(const std::string& name) const { return prefix_ + name; }
  std::string frameKey(int rank, std::uint64_t number) const;
  bool probeQueues();
  bool isGone() noexcept;
  Sent sendByKey(std::span<const std::uint8_t> bytes);
  std::optional<std::vector<std::uint8_t>> receiveByKey();
  std::optional<std::vector<std::uint8_t>> newReport();
  void fail(const char* reason) noexcept;

  // Used by one thread: the monitor's on every rank but the root, the collector's there.
  StoreWatch watch_;
  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  std::vector<int> ranks_;
  std::string prefix_;
  bool queues_ = false;
  bool forgets_ = true;  // what is set again is gone
  std::atomic<bool> gone_{false};

  std::uint64_t publications_ = 0;  // on the root: made; elsewhere: the number of the last one seen
  Instant nextReportLook_{};
  bool beatSeen_ = false;  // so its key is there, and stays

  // Where there are no queues.
  Turns turns_;
  std::uint64_t sent_ = 0;
  std::map<int, std::uint64_t> taken_;  // frames, by rank
  std::size_t nextRank_ = 0;            // to look at; 0: a look begins
  Duration lookPeriod_ = kLookPeriod;
  std::optional<Instant> lastLook_;

  mutable Mutex mutex_;
  std::string error_ GUARDED_BY(mutex_);
};

}  // namespace straggler
