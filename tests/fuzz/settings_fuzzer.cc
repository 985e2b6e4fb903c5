// The settings, as the environment may have them: lines of NAME=VALUE, without STRAGGLER_ before the name.
//
//   parseSettings() gives values that are allowed, or throws SettingsError and nothing else
//   settingRows() never throws
#include <cmath>

#include "backend/base/settings.h"
#include "backend/detect/rules.h"
#include "tests/fuzz/fuzzing.h"

namespace straggler {
namespace {

Environment environmentOf(std::string_view text) {
  Environment environment;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace_back("STRAGGLER_" + std::string(line.substr(0, equals)), line.substr(equals + 1));
    }
  }
  return environment;
}

}  // namespace
}  // namespace straggler

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace straggler;
  const auto environment = environmentOf(Input(data, size).text());
  require(!settingRows(environment).empty());
  try {
    const Settings settings = parseSettings(environment);
    require(settings.window >= 1 && settings.window <= kMaxWindow);
    require(std::isfinite(settings.multiplier) && settings.multiplier > 1);
    require(ruleFromString(settings.rule).has_value());
  } catch (const SettingsError& error) {
    require(std::string_view(error.what()).find("STRAGGLER_") != std::string_view::npos);
  }
  return 0;
}
