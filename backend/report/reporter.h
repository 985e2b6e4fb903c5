// Reporter: where a session tells what it learned. One interface, one file an implementation.
//
// Thread safety: all functions are called by one thread, the root's collector. A reporter may block (a full pipe, a slow
// disk): then reports are late, and nothing else is.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/report/job_report.h"
#include "backend/report/json_records.h"

namespace straggler {

class Reporter {
 public:
  virtual ~Reporter() = default;

  virtual void started(const SessionStart& /*session*/) {}
  // A frame, as it came in from a rank.
  virtual void received(const Frame& /*frame*/) {}
  virtual void armed(const JobReport& /*report*/) {}
  // A verdict started, changed or cleared.
  virtual void changed(const Verdict& /*verdict*/, const JobReport& /*report*/) {}
  virtual void ended(const JobReport& /*report*/) {}
  // Records that could not be written.
  virtual std::uint64_t recordsLost() const { return 0; }
};

// Passes everything on to several reporters, in order.
class CompositeReporter final : public Reporter {
 public:
  explicit CompositeReporter(std::vector<std::unique_ptr<Reporter>> reporters) : reporters_(std::move(reporters)) {}

  void started(const SessionStart& session) override {
    for (auto& reporter : reporters_) {
      reporter->started(session);
    }
  }
  void received(const Frame& frame) override {
    for (auto& reporter : reporters_) {
      reporter->received(frame);
    }
  }
  void armed(const JobReport& report) override {
    for (auto& reporter : reporters_) {
      reporter->armed(report);
    }
  }
  void changed(const Verdict& verdict, const JobReport& report) override {
    for (auto& reporter : reporters_) {
      reporter->changed(verdict, report);
    }
  }
  void ended(const JobReport& report) override {
    for (auto& reporter : reporters_) {
      reporter->ended(report);
    }
  }
  std::uint64_t recordsLost() const override {
    std::uint64_t lost = 0;
    for (const auto& reporter : reporters_) {
      lost += reporter->recordsLost();
    }
    return lost;
  }

 private:
  std::vector<std::unique_ptr<Reporter>> reporters_;
};

}  // namespace straggler
