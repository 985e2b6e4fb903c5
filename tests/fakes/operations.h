// Builders for operations: short to write, with times in milliseconds on one rank's clock.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/observe/operation.h"

namespace straggler {

inline Duration ms(double milliseconds) { return Duration(std::llround(milliseconds * 1e6)); }
inline Instant at(double milliseconds) { return Instant(ms(milliseconds)); }
inline Stamp hostStamp(double milliseconds) { return {at(milliseconds), StampSource::kHost}; }

// An operation of which nothing but the arrival is known.
inline Operation entered(OpKind kind, double arrivalMs, GroupId group = 1) {
  Operation operation;
  operation.key = {group, 0, kind};
  operation.method = "allreduce";
  operation.dtype = "Float";
  operation.bytes = 4096;
  operation.arrival = hostStamp(arrivalMs);
  return operation;
}

// A synchronous call, from its arrival to its completion.
inline Operation synchronous(double arrivalMs, double completedMs, std::uint64_t bytes = 4096, GroupId group = 1) {
  Operation operation = entered(OpKind::kAllReduce, arrivalMs, group);
  operation.bytes = bytes;
  operation.issued = hostStamp(completedMs);
  operation.completed = hostStamp(completedMs);
  operation.released = {at(completedMs), StampSource::kCompletion};
  return operation;
}

// An asynchronous call that is waited for from `waitedMs` to `releasedMs`.
inline Operation waited(double arrivalMs, double waitedMs, double releasedMs, GroupId group = 1) {
  Operation operation = entered(OpKind::kAllReduce, arrivalMs, group);
  operation.asynchronous = true;
  operation.issued = hostStamp(arrivalMs);
  operation.completed = {at(releasedMs), StampSource::kFuture};
  operation.waited = hostStamp(waitedMs);
  operation.released = {at(releasedMs), StampSource::kWait};
  return operation;
}

// A bucket's call in a backward that ends at `endMs`.
inline Operation bucket(int graphTask, double arrivalMs, double endMs, std::uint64_t bytes = 1 << 20,
                        GroupId group = 1) {
  Operation operation = entered(OpKind::kAllReduce, arrivalMs, group);
  operation.bytes = bytes;
  operation.asynchronous = true;
  operation.graphTask = graphTask;
  operation.issued = hostStamp(arrivalMs);
  operation.completed = {at(endMs), StampSource::kFuture};
  operation.released = {at(endMs), StampSource::kGraphTask};
  return operation;
}

}  // namespace straggler
