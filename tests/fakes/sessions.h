// What tests of whole sessions need: options whose output goes to a file that the test reads, a transport that blocks, a
// bounded wait for a condition, and what a process holds.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/session/local_exchange.h"
#include "backend/session/session.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/temporary_folder.h"

namespace straggler {

class SessionOutput {
 public:
  SessionOutput() : descriptor_(open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  ~SessionOutput() { close(descriptor_); }
  SessionOutput(const SessionOutput&) = delete;
  SessionOutput& operator=(const SessionOutput&) = delete;

  Session::Options options() {
    recorder = std::make_shared<Recorder>();
    return {rank, ranks, settings, recorder, exchange, note, poller, std::make_shared<DescriptorLog>(descriptor_)};
  }

  std::string text() const {
    std::ifstream file(folder_ / "out");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // How often `part` was written.
  std::size_t count(const std::string& part) const {
    const std::string all = text();
    std::size_t found = 0;
    for (auto place = all.find(part); place != std::string::npos; place = all.find(part, place + 1)) {
      ++found;
    }
    return found;
  }

  int rank = 0;
  std::vector<int> ranks = {0};
  Settings settings;
  std::shared_ptr<Recorder> recorder;  // of the options given last
  std::shared_ptr<Exchange> exchange;
  std::string note;
  std::shared_ptr<Poller> poller;

 private:
  TemporaryFolder folder_;
  int descriptor_;
};

// A store that does not answer: send() returns only once the test lets it, and then as if nothing had been, so that a
// thread that was left behind has nothing to say on an output that the test may have closed.
class BlockedExchange final : public Exchange {
 public:
  Sent send(std::span<const std::uint8_t> /*bytes*/) noexcept override {
    while (blocked_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Sent::kYes;
  }
  bool rootLeaving() noexcept override { return false; }
  std::string lastError() const override { return {}; }
  std::optional<std::vector<std::uint8_t>> receive() noexcept override { return std::nullopt; }
  void announceLeaving() noexcept override {}
  void publish(std::span<const std::uint8_t> /*bytes*/, Publication /*publication*/) noexcept override {}
  std::optional<std::vector<std::uint8_t>> published() noexcept override { return std::nullopt; }
  void unblock() { blocked_ = false; }

 private:
  std::atomic<bool> blocked_{true};
};

// Waits until the condition holds, 20 s at most; says whether it does.
inline bool eventually(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

// Threads and open descriptors of this process.
inline std::pair<std::size_t, std::size_t> processResources() {
  const auto entries = [](const char* folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  };
  return {entries("/proc/self/task"), entries("/proc/self/fd")};
}

}  // namespace straggler
