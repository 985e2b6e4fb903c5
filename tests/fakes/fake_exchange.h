// FakeExchange: a transport that a test reads and feeds. It keeps every frame that was sent, answers as it is told, and
// counts the calls made after the root had said that it leaves.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/exchange/codec.h"
#include "backend/exchange/exchange.h"

namespace straggler {

class FakeExchange final : public Exchange {
 public:
  // ---- What the test sets ----
  Sent answer = Sent::kYes;
  bool leaving = false;  // what rootLeaving() says
  std::string error = "the peer closed the connection";
  std::string news;                               // what the root has published
  bool busyUntilTheEnd = false;                   // nothing is taken, nothing given before ending()
  std::optional<std::vector<std::uint8_t>> beat;  // what the root shows
  std::function<void()> delay = [] {};            // before and after a beat is put in its place or looked at

  // ---- What the test reads ----
  std::vector<Frame> sent;
  std::size_t bytesSent = 0;
  std::size_t sendCalls = 0;
  std::size_t leavingCalls = 0;
  std::size_t announcements = 0;
  std::size_t endings = 0;
  std::size_t looks = 0;  // for what the root has published
  std::size_t beatsShown = 0;
  std::size_t beatLooks = 0;
  std::vector<std::pair<std::string, Publication>> publications;

  void feed(const Frame& frame) { incoming_.push_back(encode(frame)); }
  void feed(std::vector<std::uint8_t> bytes) { incoming_.push_back(std::move(bytes)); }

  // The messages of one type, in the order they were sent.
  template <class M>
  std::vector<M> messages() const {
    std::vector<M> result;
    for (const auto& frame : sent) {
      for (const auto& message : frame.messages) {
        if (const auto* m = std::get_if<M>(&message)) {
          result.push_back(*m);
        }
      }
    }
    return result;
  }

  // ---- Exchange ----
  Sent send(std::span<const std::uint8_t> bytes) noexcept override {
    ++sendCalls;
    if (inTurns()) {
      return Sent::kLater;
    }
    if (answer == Sent::kYes) {
      // A frame that cannot be decoded ends the test here: nothing may throw beyond.
      sent.push_back(decode(bytes).value());
      bytesSent += bytes.size();
    }
    return answer;
  }
  bool rootLeaving() noexcept override {
    ++leavingCalls;
    return leaving;
  }
  std::string lastError() const override { return answer == Sent::kGone ? error : std::string(); }
  std::optional<std::vector<std::uint8_t>> receive() noexcept override {
    if (incoming_.empty() || inTurns()) {
      return std::nullopt;
    }
    auto bytes = std::move(incoming_.front());
    incoming_.pop_front();
    return bytes;
  }
  void announceLeaving() noexcept override { ++announcements; }
  void ending() noexcept override { ++endings; }
  void publish(std::span<const std::uint8_t> bytes, Publication publication) noexcept override {
    publications.emplace_back(std::string(bytes.begin(), bytes.end()), publication);
  }
  std::optional<std::vector<std::uint8_t>> published() noexcept override {
    ++looks;
    const std::string text = std::exchange(news, {});
    return text.empty() ? std::nullopt
                        : std::optional<std::vector<std::uint8_t>>(std::in_place, text.begin(), text.end());
  }
  void showBeat(std::span<const std::uint8_t> bytes) noexcept override {
    ++beatsShown;
    delay();
    beat.emplace(bytes.begin(), bytes.end());
    delay();
  }
  std::optional<std::vector<std::uint8_t>> lookAtBeat() noexcept override {
    ++beatLooks;
    delay();
    const auto seen = beat;
    delay();
    return seen;
  }

 private:
  bool inTurns() const { return busyUntilTheEnd && endings == 0; }

  std::deque<std::vector<std::uint8_t>> incoming_;
};

}  // namespace straggler
