// RingBuffer: a queue of fixed capacity whose entries keep a ticket, by which they can be filled in until they are
// taken out. Memory is taken once, at construction.
//
// A full buffer refuses the newest entry rather than overwrite the oldest: what was promised to a ticket holder stays,
// and what is refused is counted. Not thread-safe: its owner holds the lock.
//
//   capacity 3:  push a, b, c -> tickets 0, 1, 2;  push d -> refused;  pop -> a;  push e -> ticket 3;  at(0) -> gone
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace straggler {

using Ticket = std::uint64_t;

template <class T>
class RingBuffer {
 public:
  explicit RingBuffer(std::size_t capacity) : entries_(capacity) {}

  std::optional<Ticket> push(const T& entry) {
    if (head_ - tail_ == entries_.size()) {
      ++refused_;
      return std::nullopt;
    }
    entries_[slot(head_)] = entry;
    return head_++;
  }

  // The entry of a ticket, or null once it was taken out.
  T* at(Ticket ticket) { return ticket >= tail_ && ticket < head_ ? &entries_[slot(ticket)] : nullptr; }
  const T* at(Ticket ticket) const { return ticket >= tail_ && ticket < head_ ? &entries_[slot(ticket)] : nullptr; }

  T* front() { return at(tail_); }
  void pop() { ++tail_; }

  Ticket begin() const { return tail_; }
  Ticket end() const { return head_; }
  std::size_t size() const { return static_cast<std::size_t>(head_ - tail_); }
  std::size_t capacity() const { return entries_.size(); }
  std::uint64_t refused() const { return refused_; }

 private:
  std::size_t slot(Ticket ticket) const { return static_cast<std::size_t>(ticket % entries_.size()); }

  std::vector<T> entries_;
  Ticket tail_ = 0;  // oldest ticket still held
  Ticket head_ = 0;  // next ticket to give
  std::uint64_t refused_ = 0;
};

}  // namespace straggler
