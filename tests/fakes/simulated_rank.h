// SimulatedRank: one rank of a data-parallel job on a clock of its own, from its recorder to what its monitor sends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/session/monitor.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_exchange.h"
#include "tests/fakes/operations.h"

namespace straggler {

class SimulatedRank {
 public:
  struct Options {
    int rank = 0;
    GroupInfo group{"world", "default_pg", "gloo", {0, 1}};
    int window = 10;
    std::unique_ptr<RecordFile> operations = nullptr;
    bool connected = true;
    double fetchMs = 0;  // what each step begins with; 0: there is no DataLoader
    std::function<OsTotals(int thread)> osTotals{};
    bool listens = false;  // to the root's clock
  };

  explicit SimulatedRank(Options options) : group_(options.group), fetchMs_(options.fetchMs) {
    monitor =
        std::make_unique<Monitor>(Monitor::Options{options.rank,
                                                   options.window,
                                                   {"host-a", 1000 + options.rank, "clock-a"},
                                                   options.connected ? exchange : nullptr,
                                                   std::move(options.operations),
                                                   [this](const std::string& reason) { complaints.push_back(reason); },
                                                   std::move(options.osTotals),
                                                   options.listens ? &clock : nullptr},
                                  recorder);
    monitor->addGroup(options.group);
  }
  SimulatedRank() : SimulatedRank(Options{}) {}

  // One training step: `buckets` collectives in a backward of `lengthMs`, then a turn of the monitor.
  void step(double lengthMs = 30, int buckets = 4) {
    if (fetchMs_ > 0) {
      recorder->fetched({clock.now(), clock.now() + ms(fetchMs_)});
    }
    std::vector<Ticket> tickets;
    for (int i = 0; i < buckets; ++i) {
      clock.advance(ms(lengthMs / (buckets + 1)));
      Operation operation = entered(OpKind::kAllReduce, 0, group_.id());
      operation.arrival = {clock.now(), StampSource::kHost};
      operation.asynchronous = true;
      operation.graphTask = steps_;
      tickets.push_back(recorder->enter(operation));
      recorder->issued(tickets.back(), clock.now());
    }
    clock.advance(ms(lengthMs / (buckets + 1)));
    for (const Ticket ticket : tickets) {
      recorder->completed(ticket, {clock.now(), StampSource::kFuture}, false);
    }
    recorder->graphTaskReleased(steps_++, clock.now());
    monitor->round(clock.now());
  }
  void steps(int count, double lengthMs = 30, int buckets = 4) {
    for (int i = 0; i < count; ++i) {
      step(lengthMs, buckets);
    }
  }
  // Turns of the monitor without anything happening.
  void idle(double milliseconds) {
    for (double passed = 0; passed < milliseconds; passed += 25) {
      clock.advance(ms(25));
      monitor->round(clock.now());
    }
  }
  // With operations that never complete, until they are given up.
  bool finish() {
    if (monitor->finish(clock.now())) {
      return true;
    }
    clock.advance(Monitor::kCompletionPatience);
    return monitor->finish(clock.now());
  }

  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
  std::shared_ptr<FakeExchange> exchange = std::make_shared<FakeExchange>();
  std::vector<std::string> complaints;
  FakeClock clock{at(1e6)};
  std::unique_ptr<Monitor> monitor;

 private:
  GroupInfo group_;
  double fetchMs_;
  int steps_ = 0;
};

}  // namespace straggler
