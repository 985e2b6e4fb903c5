// RecordingReporter: keeps what it is told in a log that outlives it, since its owner destroys it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/report/reporter.h"

namespace straggler {

class RecordingReporter final : public Reporter {
 public:
  struct Log {
    std::vector<std::string> calls;  // "started", "received", "armed", "changed", "ended", in order
    std::vector<Frame> frames;
    std::vector<JobReport> armed;
    std::vector<Verdict> changed;
    std::vector<JobReport> ended;
    std::uint64_t lost = 0;  // what recordsLost() says
  };

  explicit RecordingReporter(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  void started(const SessionStart& /*session*/) override { log_->calls.emplace_back("started"); }
  void received(const Frame& frame) override {
    log_->calls.emplace_back("received");
    log_->frames.push_back(frame);
  }
  void armed(const JobReport& report) override {
    log_->calls.emplace_back("armed");
    log_->armed.push_back(report);
  }
  void changed(const Verdict& verdict, const JobReport& /*report*/) override {
    log_->calls.emplace_back("changed");
    log_->changed.push_back(verdict);
  }
  void ended(const JobReport& report) override {
    log_->calls.emplace_back("ended");
    log_->ended.push_back(report);
  }
  std::uint64_t recordsLost() const override { return log_->lost; }

 private:
  std::shared_ptr<Log> log_;
};

}  // namespace straggler
