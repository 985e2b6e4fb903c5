// Recorder: where backends write what they see, and the monitor reads it.
//
// The writing side runs on the training thread, inside a collective call: it takes one short lock, allocates nothing and
// never throws. An operation that finds the ring full is numbered all the same, so that later op keys stay equal on all
// ranks; it is counted as dropped and its ticket is kNoTicket, which every other call accepts and ignores.
//
// Beside the operations it holds the fetches of the training thread, in a small ring of their own. They are evidence, no
// measurement: those that find it full are forgotten.
//
// Thread safety: every function may be called from any thread. Lock order: mutex_ is a leaf; nothing is called under it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/observe/fetch.h"
#include "backend/observe/operation.h"
#include "backend/observe/ring_buffer.h"

namespace straggler {

inline constexpr Ticket kNoTicket = std::numeric_limits<Ticket>::max();
inline constexpr int kNoThread = 0;

class Recorder {
 public:
  // 8 MB at most, by the promise made to users.
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;
  // Many times what comes in between two turns of the monitor: torch alone takes some 5 microseconds a fetch.
  static constexpr std::size_t kFetchCapacity = 4096;
  static constexpr std::size_t kDefaultCapacity = (kMaxBytes - kFetchCapacity * sizeof(Fetch)) / sizeof(Operation);

  static constexpr std::size_t kMaxHeldBack = 4096;

  explicit Recorder(std::size_t capacity = kDefaultCapacity) : ring_(capacity) {}

  // ---- Written by backends ----

  // A group must be added before its first operation, off the hot path.
  void addGroup(GroupId group);

  // `operation` with everything known at arrival; its sequence number is given here. An arrival that is still pending
  // carries the host's time, which counts if the device never tells its own.
  Ticket enter(Operation operation) noexcept;
  void arrived(Ticket ticket, Stamp stamp) noexcept;
  void issued(Ticket ticket, Instant time) noexcept;
  void completed(Ticket ticket, Stamp stamp, bool failed) noexcept;
  // The inner call threw: there is no Work, and nothing more to learn.
  void failed(Ticket ticket) noexcept;
  void waiting(Ticket ticket, Instant time) noexcept;
  void released(Ticket ticket, Stamp stamp) noexcept;
  // The caller let go of the Work: if it did not wait before, it never will. Inside a backward the end of the backward
  // still tells of the release.
  void abandoned(Ticket ticket) noexcept;
  // The backward `graphTask` returned: releases every operation of it that nobody waited for by itself.
  void graphTaskReleased(int graphTask, Instant time) noexcept;
  // An operation was captured into a device graph: it does not run now, and its replays are not seen.
  void sawCapture() noexcept { ++captured_; }
  // The kernel's id of the thread that trains. Until it is told, it is kNoThread.
  void setTrainingThread(int thread) noexcept { trainingThread_ = thread; }
  // The training thread got its next batch. Fetches are told in the order of their ends.
  void fetched(Fetch fetch) noexcept;

  // ---- Read by the monitor ----

  // Appends, in order of arrival, the oldest operations of which nothing more will be learned, at most `limit`. One that
  // stays open holds back those behind it, until kMaxHeldBack of them wait: then it is handed over as it is.
  void drain(std::vector<Operation>& out, std::size_t limit);
  // Hands over everything, settled or not.
  void drainAll(std::vector<Operation>& out);

  // Appends all fetches told so far. Called after drain(), it gives every fetch that ended before one of the operations
  // drained was entered by the same thread.
  void drainFetches(std::vector<Fetch>& out);
  int trainingThread() const { return trainingThread_; }

  // Whether the completion of an operation that is still held is yet to be told.
  bool awaitsCompletion() const;

  std::uint64_t collectives() const;
  std::uint64_t dropped() const;
  std::uint64_t captured() const { return captured_; }

 private:
  // Moves the oldest operation to `out`.
  void take(std::vector<Operation>& out) REQUIRES(mutex_);

  mutable Mutex mutex_;
  RingBuffer<Operation> ring_ GUARDED_BY(mutex_);
  RingBuffer<Fetch> fetches_ GUARDED_BY(mutex_){kFetchCapacity};
  std::unordered_map<GroupId, std::uint64_t> nextSequence_ GUARDED_BY(mutex_);
  Ticket graphBegin_ GUARDED_BY(mutex_) = 0;  // no open operation of a backward is older
  std::uint64_t collectives_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> captured_{0};
  std::atomic<int> trainingThread_{kNoThread};
};

}  // namespace straggler
