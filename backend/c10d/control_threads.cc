#include "backend/c10d/control_threads.h"

#include <exception>
#include <utility>

#include "backend/mitigate/coordinator.h"

namespace straggler {

ControlThreads::ControlThreads(std::shared_ptr<Carrier> carrier, std::unique_ptr<ControlChannel> channel,
                               Options options, Hooks hooks)
    : carrier_(std::move(carrier)),
      channel_(std::move(channel)),
      options_(options),
      hooks_(std::move(hooks)),
      inbox_(channel_->inboxOfRank()),
      coordinatorInbox_(options.coordinates ? channel_->inboxOfCoordinator() : nullptr) {}

void ControlThreads::start() {
  threads_.emplace_back([this] { run("the watching thread", &ControlThreads::watch); });
  threads_.emplace_back([this] { run("the proxy", &ControlThreads::proxy); });
  if (coordinatorInbox_) {
    threads_.emplace_back([this] { run("the coordinator", &ControlThreads::coordinate); });
  }
}

ControlThreads::~ControlThreads() { stop(); }

void ControlThreads::stop() noexcept {
  if (stopping_.exchange(true)) {
    return;
  }
  if (!origin_.here()) {
    // Of threads that do not exist here no object may be joined, detached or destroyed.
    static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
    return;
  }
  carrier_->stop();
  inbox_->close();
  if (coordinatorInbox_) {
    coordinatorInbox_->close();
  }
  for (auto& thread : threads_) {
    thread.join();
  }
}

void ControlThreads::run(const char* thread, void (ControlThreads::*loop)()) {
  std::string reason;
  try {
    (this->*loop)();
    reason = channel_->gone();
  } catch (const std::exception& error) {
    reason = std::string(thread) + " ended: " + error.what();
  }
  if (!stopping_ && !reason.empty()) {
    hooks_.failed("control messages are carried no more (" + reason + ")");
  }
}

// ---- Watch ----

void ControlThreads::watch() {
  while (!stopping_ && channel_->gone().empty()) {
    const Carrier::Look look = carrier_->look();
    tell(look.tell);
    if (!look.participations.empty()) {
      hooks_.filled(look.participations);
    }
    if (!look.failure.empty()) {
      hooks_.raises(look.failure);
    }
    hooks_.looked();
    carrier_->waitForNews(look.again);
  }
}

void ControlThreads::tell(const Engine::Tell& told) {
  const auto send = [this](const ControlMessage& message) {
    ++messages_;
    channel_->sendToCoordinator(encodeControl(message));
  };
  if (told.caughtUp) {
    send(*told.caughtUp);
  }
  if (told.refusal) {
    send(*told.refusal);
  }
  for (const auto& reservation : told.reservations) {
    send(reservation);
  }
  for (const auto& acknowledgement : told.acknowledgements) {
    send(acknowledgement);
  }
  if (told.pending) {
    send(*told.pending);
  }
}

// ---- Proxy ----

void ControlThreads::proxy() {
  while (const auto bytes = inbox_->receive()) {
    if (const auto message = decodeControl(*bytes)) {
      carrier_->hear(*message);
    }
  }
}

// ---- Coordinator ----

void ControlThreads::coordinate() {
  Coordinator coordinator(options_.ranks, options_.quorum, options_.mode);
  while (const auto bytes = coordinatorInbox_->receive()) {
    const auto message = decodeControl(*bytes);
    if (!message) {
      continue;
    }
    for (const auto& order : coordinator.receive(*message, SteadyClock().now())) {
      const auto encoded =
          std::visit([](const auto& each) { return encodeControl(ControlMessage(each)); }, order.message);
      ++messages_;
      channel_->sendToRank(order.rank, encoded);
    }
  }
}

}  // namespace straggler
