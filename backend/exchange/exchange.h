// Exchange: how a rank's monitor reaches the root of its session, and the root hears it. An interface, because the
// transport (a clone of the group's store) needs torch and tests need none.
//
// Contract: no function throws. Once the transport is gone, every function returns at once, and lastError() says why. A
// function may block for as long as the other side stands still: the session bounds its own end, not the transport. No
// collective is ever issued.
//
// Thread safety: the sender's side belongs to the monitor, the receiver's to the root's collector; they may run at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace straggler {

class Exchange {
 public:
  enum class Sent : std::uint8_t {
    kYes,
    kLater,  // the root is behind, or this transport's next turn has not come; offer the bytes again
    kGone,   // the transport is gone for good
  };
  enum class Publication : std::uint8_t {
    kNews,     // says something else than the last one
    kFigures,  // the same with newer figures: left out where nothing that was ever set is forgotten
  };
  // More is not published, and not believed.
  static constexpr std::size_t kMaxPublished = 4096;

  virtual ~Exchange() = default;

  // ---- Every rank ----
  virtual Sent send(std::span<const std::uint8_t> bytes) noexcept = 0;
  // Whether the root has said that it listens no longer. Then the transport must not be touched again, since the
  // store may end with the root.
  virtual bool rootLeaving() noexcept = 0;
  // What the root has published last, if that is newer than what this gave before. Cheap to call often: the transport is
  // looked at now and then only. What is given is bounded, and otherwise not to be trusted.
  virtual std::optional<std::vector<std::uint8_t>> published() noexcept = 0;
  // The beat that the root shows (beat.h), if any: a look at what is there now. Not to be trusted.
  virtual std::optional<std::vector<std::uint8_t>> lookAtBeat() noexcept { return std::nullopt; }
  // Why the transport is gone; empty while it works.
  virtual std::string lastError() const = 0;

  // ---- Both ----
  // The session ends, on this side, and somebody waits for it: a transport that keeps to turns does so no longer.
  virtual void ending() noexcept {}

  // ---- The root ----
  virtual std::optional<std::vector<std::uint8_t>> receive() noexcept = 0;
  virtual void announceLeaving() noexcept = 0;
  // Puts the bytes where every rank finds them, in place of what was published before.
  virtual void publish(std::span<const std::uint8_t> bytes, Publication publication) noexcept = 0;
  // Puts the bytes where every rank can look at them, in place of those before. When it returns, whoever begins to look sees
  // them. A transport that keeps all that was ever set leaves beats out.
  virtual void showBeat(std::span<const std::uint8_t> /*bytes*/) noexcept {}
};

}  // namespace straggler
