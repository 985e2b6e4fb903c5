// Recorded lines, fed again to the model that the live collector uses.
#include <pybind11/stl.h>

#include "backend/base/settings.h"
#include "backend/detect/job_model.h"
#include "backend/exchange/codec.h"
#include "backend/report/json_records.h"
#include "backend/report/text_report.h"
#include "python_registration/bindings/bind.h"

namespace py = pybind11;

namespace straggler {
namespace {

template <class T>
T get(const py::dict& line, const char* field) {
  if (!line.contains(field)) {
    throw py::value_error(std::string("the record has no field '") + field + "'");
  }
  try {
    return py::cast<T>(line[field]);
  } catch (const py::cast_error&) {
    throw py::value_error(std::string("the record's field '") + field + "' has another type than the schema says");
  }
}

// What earlier versions did not write is not known.
template <class T>
std::optional<T> getIfWritten(const py::dict& line, const char* field) {
  return line.contains(field) ? get<std::optional<T>>(line, field) : std::nullopt;
}

template <class T>
T known(const std::optional<T>& value, const std::string& text) {
  if (!value) {
    throw py::value_error("unknown value '" + text + "'");
  }
  return *value;
}

ArrivalSample sampleOf(const py::dict& entry) {
  const auto kind = get<std::string>(entry, "kind");
  ArrivalSample sample;
  sample.key = {get<GroupId>(entry, "group"), get<std::uint64_t>(entry, "collective_seq_id"),
                known(opKindFromString(kind), kind)};
  sample.arrival = fromNanoseconds(get<std::int64_t>(entry, "arrival_ns"));
  if (const auto completed = get<std::optional<std::int64_t>>(entry, "completed_ns")) {
    sample.completed = fromNanoseconds(*completed);
  }
  sample.polled = getIfWritten<bool>(entry, "polled").value_or(false);
  sample.sizeClass = getIfWritten<std::uint8_t>(entry, "size_class").value_or(0);
  return sample;
}

StepWindow windowOf(const py::dict& line) {
  const auto foundBy = get<std::string>(line, "steps_found_by");
  StepWindow window{get<std::int64_t>(line, "first_step"),           get<std::uint32_t>(line, "stride"),
                    known(stepsFoundByFromString(foundBy), foundBy), get<std::vector<std::uint32_t>>(line, "self_us"),
                    get<std::uint64_t>(line, "duration_us"),         getIfWritten<std::uint64_t>(line, "input_us"),
                    getIfWritten<std::uint64_t>(line, "cpu_us"),     getIfWritten<std::uint64_t>(line, "run_delay_us")};
  for (const OsCounter counter : allOsCounters()) {
    window.os[counter] = getIfWritten<std::uint64_t>(line, totalField(counter).c_str());
  }
  return window;
}

MitigationSummary mitigationOf(const py::dict& line) {
  MitigationSummary summary;
  summary.mode = get<std::string>(line, "mode");
  summary.armed = get<bool>(line, "armed");
  summary.text = get<std::string>(line, "text");
  summary.filledByProxy = get<std::uint64_t>(line, "filled_by_proxy");
  summary.late = get<std::uint64_t>(line, "late");
  summary.applied = get<std::uint64_t>(line, "applied");
  summary.dropped = get<std::uint64_t>(line, "dropped");
  summary.pending = get<std::uint64_t>(line, "pending");
  summary.stalenessSum = get<std::uint64_t>(line, "staleness_sum");
  summary.stalenessMax = get<std::uint64_t>(line, "staleness_max");
  summary.savedUs = get<std::uint64_t>(line, "saved_us");
  return summary;
}

RankProgram programOf(const py::dict& line) {
  RankProgram program;
  for (const auto& entry : get<std::vector<py::dict>>(line, "uses")) {
    const auto kind = get<std::string>(entry, "kind");
    program.uses.push_back({get<GroupId>(entry, "group"), known(opKindFromString(kind), kind)});
  }
  return program;
}

ClockReading clockOf(const py::dict& line) {
  const auto time = [&line](const char* field) { return fromNanoseconds(get<std::int64_t>(line, field)); };
  return {time("root_before_ns"), time("root_after_ns"), time("before_ns"), time("after_ns")};
}

// Nothing for a line that is no message (an operation, a report).
std::optional<Message> messageOf(const py::dict& line) {
  const auto type = get<std::string>(line, "type");
  if (type == "rank") {
    return RankHello{get<std::string>(line, "host"), get<std::int64_t>(line, "pid"),
                     get<std::string>(line, "clock_domain")};
  }
  if (type == "group") {
    return GroupInfo{get<std::string>(line, "name"), get<std::string>(line, "desc"), get<std::string>(line, "backend"),
                     get<std::vector<int>>(line, "ranks")};
  }
  if (type == "window") {
    return windowOf(line);
  }
  if (type == "arrivals") {
    ArrivalSamples samples;
    samples.sampling = get<std::uint32_t>(line, "sampling");
    for (const auto& entry : get<std::vector<py::dict>>(line, "operations")) {
      samples.operations.push_back(sampleOf(entry));
    }
    return samples;
  }
  if (type == "counters") {
    return RankCounters{get<std::uint64_t>(line, "collectives"), get<std::uint64_t>(line, "records_dropped"),
                        get<std::uint64_t>(line, "messages_lost"), get<std::uint64_t>(line, "captured"),
                        get<bool>(line, "final")};
  }
  if (type == "mitigation") {
    return mitigationOf(line);
  }
  if (type == "program") {
    return programOf(line);
  }
  if (type == "clock") {
    return clockOf(line);
  }
  return std::nullopt;
}

// Lines of one rank that follow each other came in one frame, as a rule: how much a rank sends at once says how long the
// model waits for it.
class Replay {
 public:
  explicit Replay(const py::dict& session)
      : model_(checkedRanks(get<std::vector<int>>(session, "ranks")), checkedWindow(get<int>(session, "window")),
               detectorOptions(session)) {}

  // Takes the next line; says whether it was one that a replay uses.
  bool line(const py::dict& line) {
    auto message = messageOf(line);
    if (!message) {
      return false;
    }
    // Through the codec: what a recorded line may say is bounded as what the network may.
    const auto frame = decode(encode({get<int>(line, "rank"), {std::move(*message)}}));
    if (!frame) {
      throw py::value_error("a value of the record is out of bounds");
    }
    if (frame->rank != frame_.rank || frame_.messages.size() >= kMaxMessages) {
      applyFrame();
      frame_.rank = frame->rank;
    }
    frame_.messages.push_back(frame->messages.front());
    return true;
  }

  std::string reportJson() { return toJson(report()); }
  std::string text() { return textReport(report()); }

 private:
  JobReport report() {
    applyFrame();
    return jobReport(model_);
  }

  void applyFrame() {
    if (!frame_.messages.empty()) {
      model_.apply(frame_);
      frame_.messages.clear();
    }
  }

  // Records of a version without rules are of the default one.
  static DetectorOptions detectorOptions(const py::dict& session) {
    SessionStart start;
    if (session.contains("rule")) {
      start.rule = get<std::string>(session, "rule");
      start.multiplier = get<double>(session, "multiplier");
      known(ruleFromString(start.rule), start.rule);
    }
    if (!(start.multiplier > 1)) {
      throw py::value_error("the session's multiplier must be above 1");
    }
    return start.detectorOptions();
  }

  static int checkedWindow(int window) {
    if (window < 1 || window > kMaxWindow) {
      throw py::value_error("the session's window must be from 1 to " + std::to_string(kMaxWindow) + " steps");
    }
    return window;
  }

  static std::vector<int> checkedRanks(std::vector<int> ranks) {
    if (ranks.empty() || !std::is_sorted(ranks.begin(), ranks.end())) {
      throw py::value_error("the session's ranks must be ascending, and at least one");
    }
    return ranks;
  }

  JobModel model_;
  Frame frame_;  // not applied yet
};

}  // namespace

void bindReplay(py::module_& module) {
  py::class_<Replay>(module, "Replay", "Feeds the records of a session again; gives the same report.")
      .def(py::init<const py::dict&>(), py::arg("session"), "Takes the session line.")
      .def("line", &Replay::line, py::arg("line"), "Takes one more line; False if a replay has no use for it.")
      .def("report_json", &Replay::reportJson, "The report record.")
      .def("text", &Replay::text, "The report as people read it.");
}

}  // namespace straggler
