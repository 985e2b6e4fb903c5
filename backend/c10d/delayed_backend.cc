#include "backend/c10d/delayed_backend.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "backend/c10d/blocking.h"

namespace straggler {
namespace {

template <class T>
T number(const std::string& field, const std::string& text) {
  std::istringstream in(text);
  T value{};
  if (!(in >> value) || !in.eof()) {
    throw std::invalid_argument("injection rule: " + field + "='" + text + "' is not a number");
  }
  return value;
}

void setField(DelayedBackend::Rule& rule, const std::string& field, const std::string& value) {
  if (field == "rank") {
    rule.rank = number<int>(field, value);
  } else if (field == "ms") {
    rule.ms = number<double>(field, value);
  } else if (field == "probability") {
    rule.probability = number<double>(field, value);
  } else if (field == "from") {
    rule.from = number<std::int64_t>(field, value);
  } else if (field == "to") {
    rule.to = number<std::int64_t>(field, value);
  } else if (field == "every") {
    rule.every = std::max<std::int64_t>(1, number<std::int64_t>(field, value));
  } else if (field == "seed") {
    rule.seed = number<std::uint64_t>(field, value);
  } else {
    throw std::invalid_argument("injection rule: unknown field '" + field + "'");
  }
}

}  // namespace

std::vector<DelayedBackend::Rule> DelayedBackend::parse(const std::string& rules) {
  std::vector<Rule> parsed;
  std::istringstream lines(rules);
  for (std::string line; std::getline(lines, line);) {
    Rule rule;
    std::istringstream fields(line);
    for (std::string field; fields >> field;) {
      const auto equals = field.find('=');
      setField(rule, field.substr(0, equals), equals == std::string::npos ? "" : field.substr(equals + 1));
    }
    parsed.push_back(rule);
  }
  return parsed;
}

DelayedBackend::DelayedBackend(BackendPtr inner, int globalRank, const std::string& rules)
    : ForwardingBackend(std::move(inner)), globalRank_(globalRank), text_(rules), rules_(parse(rules)) {
  random_.seed((rules_.empty() ? 0 : rules_.front().seed) * 1000003 + static_cast<std::uint64_t>(globalRank));
}

ForwardingBackend::WorkPtr DelayedBackend::call(const Call& call, c10::function_ref<WorkPtr()> issue) {
  if (isNumbered(call.kind)) {
    double ms = 0;
    for (const auto& rule : rules_) {
      const bool due = collectives_ >= rule.from && (rule.to < 0 || collectives_ <= rule.to) &&
                       (collectives_ - rule.from) % rule.every == 0;
      const bool drawn = rule.probability >= 1 || std::uniform_real_distribution<>()(random_) < rule.probability;
      if (due && drawn && (rule.rank < 0 || rule.rank == globalRank_)) {
        ms += rule.ms;
      }
    }
    ++collectives_;
    if (ms > 0) {
      runBlocking([ms] { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); });
    }
  }
  return issue();
}

ForwardingBackend::BackendPtr DelayedBackend::wrap(BackendPtr made, const std::vector<int>& /*ranks*/) {
  return c10::make_intrusive<DelayedBackend>(std::move(made), globalRank_, text_);
}

}  // namespace straggler
