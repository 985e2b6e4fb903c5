// The records as JSON lines, one function a type. The schema of every line is written down once, in
// records.schema.json beside this file, and a test holds each line against it.
//
// What a line says of time is in its name: `_ns` on the rank's own monotonic clock, `_us`, `_ms`. Field names are Flight
// Recorder's where the two overlap (process_group, collective_seq_id, input_dtypes, is_p2p, state).
#pragma once

#include <string>
#include <vector>

#include "backend/exchange/messages.h"
#include "backend/observe/operation.h"
#include "backend/report/job_report.h"

namespace straggler {

inline constexpr int kRecordSchema = 1;

// The first line of a session in job.jsonl. All that a replay needs beside the messages.
struct SessionStart {
  std::vector<int> ranks;  // global, of all members
  int stepsPerWindow = 10;
  std::int64_t unixTimeNs = 0;
  std::string rule = "self_time";
  double multiplier = 2.0;

  // An unknown rule is the default one.
  DetectorOptions detectorOptions() const;
};

std::string toJson(const SessionStart& session);
std::string toJson(int rank, const Message& message);
std::string toJson(int rank, const GroupInfo& group, const Operation& operation);
std::string toJson(const Verdict& verdict, const JobReport& report);
std::string toJson(const JobReport& report);

}  // namespace straggler
