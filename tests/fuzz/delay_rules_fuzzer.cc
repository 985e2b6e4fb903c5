// The rules of delays put in for trials, as text of any kind.
//
//   parseDelayRules() gives rules that can be carried out, or throws std::invalid_argument and nothing else
#include <stdexcept>

#include "backend/c10d/delay_rules.h"
#include "tests/fuzz/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace straggler;
  try {
    for (const auto& rule : parseDelayRules(Input(data, size).text())) {
      require(rule.rank >= -1 && rule.ms >= 0 && rule.ms <= kMaxDelayMs);
      require(rule.probability >= 0 && rule.probability <= 1);
      for (const std::int64_t collective : {std::int64_t{0}, rule.from, rule.to, INT64_MAX}) {
        const bool due = rule.isDue(collective);
        require(!due || (collective >= rule.from && (rule.to < 0 || collective <= rule.to)));
      }
    }
  } catch (const std::invalid_argument& error) {
    require(std::string_view(error.what()).starts_with("injection rule: "));
  }
  return 0;
}
