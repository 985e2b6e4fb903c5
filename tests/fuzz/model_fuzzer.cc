// What the root does with frames of anybody: a job's model takes them in, in any order and number, and is then reported.
//
//   neither the model nor a report of it crashes or leaves defined behaviour
//   every line of JSON is one line of UTF-8, whatever names it holds; the text for people is printable ASCII
//   the brief report keeps to its bound
//
// An input: ranks, window, rule, multiplier, a byte each; then frames, each after two bytes of its length.
#include "backend/detect/job_model.h"
#include "backend/exchange/codec.h"
#include "backend/report/brief_report.h"
#include "backend/report/json_records.h"
#include "backend/report/text_report.h"
#include "backend/report/verdict_text.h"
#include "tests/fuzz/fuzzing.h"

namespace straggler {
namespace {

JobModel modelOf(Input& input) {
  std::vector<int> ranks;
  for (int left = 1 + static_cast<int>(input.number(1) % 4); left > 0; --left) {
    ranks.push_back(static_cast<int>(ranks.size()));
  }
  const auto window = 1 + static_cast<int>(input.number(1));
  DetectorOptions options;
  options.rule = static_cast<Rule>(input.number(1) % 4);
  options.multiplier = 1.25 + static_cast<double>(input.number(1)) / 16;
  return {std::move(ranks), window, options};
}

bool isPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

void check(const JobReport& report) {
  require(isOneLineOfText(toJson(report)));
  const std::string brief = briefJson(report);
  require(isOneLineOfText(brief) && brief.size() <= kMaxBriefBytes);
  require(isPrintable(textReport(report)) && isPrintable(armedLine(report)));
}

void run(Input input) {
  JobModel model = modelOf(input);
  while (!input.empty()) {
    const auto frame = decode(input.block());
    if (!frame) {
      continue;
    }
    model.apply(*frame);
    for (const auto& message : frame->messages) {
      require(isOneLineOfText(toJson(frame->rank, message)));
    }
    for (const auto& event : model.takeEvents()) {
      const JobReport report = jobReport(model);
      require(isOneLineOfText(toJson(event, report)) && isPrintable(verdictLines(event, report)));
    }
  }
  check(jobReport(model));
}

}  // namespace
}  // namespace straggler

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  straggler::run({data, size});
  return 0;
}
