// Recorded lines, fed again to the model that the live collector uses: as the job did, or under other options. Synthetic
// windows go the same way.
#include <pybind11/stl.h>

#include "backend/base/settings.h"
#include "backend/detect/noise_fit.h"
#include "backend/detect/option_table.h"
#include "backend/detect/rescore.h"
#include "backend/exchange/codec.h"
#include "backend/report/json_records.h"
#include "backend/report/text_report.h"
#include "backend/report/verdict_text.h"
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
class Frames {
 public:
  // Takes the next line, if it is one that a replay uses; gives the frame before, once it is known to be complete.
  std::optional<Frame> add(const py::dict& line, bool& used) {
    auto message = messageOf(line);
    used = message.has_value();
    if (!used) {
      return std::nullopt;
    }
    // Through the codec: what a recorded line may say is bounded as what the network may.
    const auto frame = decode(encode({get<int>(line, "rank"), {std::move(*message)}}));
    if (!frame) {
      throw py::value_error("a value of the record is out of bounds");
    }
    std::optional<Frame> complete;
    if (frame->rank != frame_.rank || frame_.messages.size() >= kMaxMessages) {
      complete = rest();
      frame_.rank = frame->rank;
    }
    frame_.messages.push_back(frame->messages.front());
    return complete;
  }

  // What was not given yet.
  std::optional<Frame> rest() {
    Frame last{frame_.rank, {}};
    std::swap(last.messages, frame_.messages);
    return last.messages.empty() ? std::nullopt : std::optional(std::move(last));
  }

 private:
  Frame frame_;
};

// Records of a version without rules are of the default one.
DetectorOptions detectorOptions(const py::dict& session) {
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

int checkedWindow(int window, const char* whose) {
  if (window < 1 || window > kMaxWindow) {
    throw py::value_error(std::string(whose) + " must be from 1 to " + std::to_string(kMaxWindow) + " steps");
  }
  return window;
}

int stepsAWindow(const py::dict& session) { return checkedWindow(get<int>(session, "window"), "the session's window"); }

std::vector<int> ranksOf(const py::dict& session) {
  auto ranks = get<std::vector<int>>(session, "ranks");
  if (ranks.empty() || !std::is_sorted(ranks.begin(), ranks.end())) {
    throw py::value_error("the session's ranks must be ascending, and at least one");
  }
  return ranks;
}

class Replay {
 public:
  explicit Replay(const py::dict& session)
      : model_(ranksOf(session), stepsAWindow(session), detectorOptions(session)) {}

  bool line(const py::dict& line) {
    bool used = false;
    if (const auto frame = frames_.add(line, used)) {
      model_.apply(*frame);
    }
    return used;
  }

  std::string reportJson() { return toJson(report()); }
  std::string text() { return textReport(report()); }

 private:
  JobReport report() {
    if (const auto frame = frames_.rest()) {
      model_.apply(*frame);
    }
    return jobReport(model_);
  }

  JobModel model_;
  Frames frames_;
};

// ---- Under other options ----

using Texts = std::map<std::string, std::string>;

// Of the session or of the defaults, then as the texts say.
DetectorOptions changed(DetectorOptions options, const Texts& texts) {
  for (const auto& [name, value] : texts) {
    setField(detectorFields(), options, name, value);
  }
  return options;
}

// A session's records, or synthetic windows, through the detector under other options.
class Rescoring {
 public:
  Rescoring(const py::dict& session, const Texts& texts, std::optional<int> window)
      : Rescoring(ranksOf(session), stepsAWindow(session), changed(detectorOptions(session), texts), window) {}

  static std::unique_ptr<Rescoring> ofSynthetic(const std::string& text, const Texts& texts,
                                                std::optional<int> window) {
    const SyntheticSpec spec = parseSynthetic(text);
    SyntheticRun run(spec);
    std::unique_ptr<Rescoring> rescoring(
        new Rescoring(run.members(), static_cast<int>(spec.steps), changed({}, texts), window));
    const py::gil_scoped_release released;
    while (const auto frames = run.next()) {
      for (const auto& frame : *frames) {
        rescoring->rescore_.apply(frame);
      }
    }
    return rescoring;
  }

  bool line(const py::dict& line) {
    bool used = false;
    if (const auto frame = frames_.add(line, used)) {
      rescore_.apply(*frame);
    }
    return used;
  }

  void finish() {
    if (const auto frame = frames_.rest()) {
      rescore_.apply(*frame);
    }
    rescore_.finish();
  }

  // The verdict records of all that was told, and of the last.
  std::vector<std::string> events() const {
    const JobReport report = jobReport(rescore_.model());
    std::vector<std::string> lines;
    for (const auto& event : rescore_.events()) {
      lines.push_back(toJson(event, report));
    }
    return lines;
  }
  std::string verdict() const { return toJson(rescore_.model().verdict(), jobReport(rescore_.model())); }
  // The same, as people read them.
  std::vector<std::string> texts() const {
    const JobReport report = jobReport(rescore_.model());
    std::vector<std::string> texts;
    for (const auto& event : rescore_.events()) {
      texts.push_back(verdictLines(event, report));
    }
    texts.push_back(verdictLines(rescore_.model().verdict(), report));
    return texts;
  }

  py::dict counts() const {
    const JobModel& model = rescore_.model();
    py::dict counts;
    counts["ranks"] = model.ranks().size();
    counts["window"] = rescore_.steps();
    counts["windows"] = model.windowsCompared();
    counts["windows_incomplete"] = model.windowsIncomplete();
    counts["windows_abstained"] = model.windowsAbstained();
    counts["windows_late"] = model.windowsLate();
    counts["windows_left_out"] = rescore_.leftOut();
    return counts;
  }
  py::dict options() const { return values(options_); }

  static py::dict values(const DetectorOptions& options) {
    py::dict values;
    for (const auto& row : fieldRows(detectorFields(), options)) {
      values[py::str(row.name)] = row.value;
    }
    return values;
  }

 private:
  Rescoring(std::vector<int> ranks, int recorded, const DetectorOptions& options, std::optional<int> window)
      : options_(options),
        rescore_(std::move(ranks), {recorded, checkedWindow(window.value_or(recorded), "window"), options}) {}

  DetectorOptions options_;
  Rescore rescore_;
  Frames frames_;
};

// The noise of a session's records, as the description of synthetic windows.
class Fit {
 public:
  explicit Fit(const py::dict& session) : fit_(ranksOf(session), stepsAWindow(session)) {}

  bool line(const py::dict& line) {
    bool used = false;
    if (const auto frame = frames_.add(line, used)) {
      fit_.apply(*frame);
    }
    return used;
  }

  // Nothing where too little was recorded.
  std::optional<std::string> like() {
    if (const auto frame = frames_.rest()) {
      fit_.apply(*frame);
    }
    const py::gil_scoped_release released;
    const auto spec = fit_.like();
    return spec ? std::optional(toText(*spec)) : std::nullopt;
  }

 private:
  NoiseFit fit_;
  Frames frames_;
};

py::list rowsOf(const std::vector<FieldRow>& rows) {
  py::list list;
  for (const auto& row : rows) {
    py::dict entry;
    entry["name"] = row.name;
    entry["default"] = row.value;
    entry["unit"] = row.unit;
    entry["allowed"] = row.allowed;
    entry["text"] = row.text;
    list.append(entry);
  }
  return list;
}

}  // namespace

void bindReplay(py::module_& module) {
  py::class_<Replay>(module, "Replay", "Feeds the records of a session again; gives the same report.")
      .def(py::init<const py::dict&>(), py::arg("session"), "Takes the session line.")
      .def("line", &Replay::line, py::arg("line"), "Takes one more line; False if a replay has no use for it.")
      .def("report_json", &Replay::reportJson, "The report record.")
      .def("text", &Replay::text, "The report as people read it.");
  py::class_<Rescoring>(module, "Rescoring", "Feeds the records of a session through the detector under other options.")
      .def(py::init<const py::dict&, const Texts&, std::optional<int>>(), py::arg("session"), py::arg("options"),
           py::arg("window"), "Takes the session line, options by name, and the steps of a window; None: as recorded.")
      .def_static("synthetic", &Rescoring::ofSynthetic, py::arg("spec"), py::arg("options"), py::arg("window"),
                  "Takes synthetic windows instead; all of them at once.")
      .def("line", &Rescoring::line, py::arg("line"), "Takes one more line; False if it has no use for it.")
      .def("finish", &Rescoring::finish, "Takes what is left of the last windows.")
      .def("events", &Rescoring::events, "The verdict records that were told.")
      .def("verdict", &Rescoring::verdict, "The verdict record in force.")
      .def("texts", &Rescoring::texts, "The events, then the verdict in force, as people read them.")
      .def("counts", &Rescoring::counts, "Ranks, steps a window, and windows by what became of them.")
      .def("options", &Rescoring::options, "The options in force, as text.");
  py::class_<Fit>(module, "NoiseFit", "The noise of a session's records.")
      .def(py::init<const py::dict&>(), py::arg("session"))
      .def("line", &Fit::line, py::arg("line"), "Takes one more line; False if it has no use for it.")
      .def("like", &Fit::like, "Synthetic windows with the same noise; None where too few windows were recorded.");
  module.def(
      "synthetic_spec", [](const std::string& text) { return toText(parseSynthetic(text)); }, py::arg("text"),
      "The same, with every name and value.");
  module.def(
      "detector_options", [] { return rowsOf(fieldRows(detectorFields(), DetectorOptions())); },
      "Every option of the detector: name, default, unit, allowed values, text.");
  module.def(
      "synthetic_options", [] { return rowsOf(fieldRows(syntheticFields(), SyntheticSpec())); },
      "The same of synthetic windows.");
}

}  // namespace straggler
