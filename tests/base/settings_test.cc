#include "backend/base/settings.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

namespace straggler {
namespace {

// What parseSettings() says of an environment that it refuses; empty if it accepts it.
std::string refusal(const Environment& environment) {
  try {
    (void)parseSettings(environment);
  } catch (const SettingsError& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const SettingRow& row(const std::vector<SettingRow>& rows, const std::string& name) {
  return *std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == name; });
}

TEST(Settings, emptyEnvironmentGivesTheDefaults) {
  const Settings settings = parseSettings({});
  EXPECT_EQ(settings.directory, "");
  EXPECT_EQ(settings.window, 10);
}

TEST(Settings, valuesAreTaken) {
  const Settings settings = parseSettings({{"STRAGGLER_DIR", "/tmp/records"}, {"STRAGGLER_WINDOW", "25"}});
  EXPECT_EQ(settings.directory, "/tmp/records");
  EXPECT_EQ(settings.window, 25);
}

TEST(Settings, unknownNameIsRefusedWithAllTheNamesThereAre) {
  const std::string text = refusal({{"STRAGGLER_WINDOWS", "10"}});
  EXPECT_TRUE(contains(text, "unknown setting STRAGGLER_WINDOWS")) << text;
  for (const auto& known : settingRows({})) {
    EXPECT_TRUE(contains(text, known.name)) << text;
  }
}

TEST(Settings, unknownNameIsRefusedEvenWhereItsValueIsEmpty) {
  EXPECT_NE(refusal({{"STRAGGLER_", ""}}), "");
  EXPECT_NE(refusal({{"STRAGGLER_dir", ""}}), "");
}

TEST(Settings, windowOutsideOfItsRangeIsRefusedWithTheRange) {
  for (const char* value : {"0", "-1", "1001", "99999999999999999999", "", " 10", "10 ", "+10", "1e2", "10.0", "ten"}) {
    const std::string text = refusal({{"STRAGGLER_WINDOW", value}});
    EXPECT_EQ(text,
              "STRAGGLER_WINDOW='" + std::string(value) + "' is not valid; allowed: a whole number from 1 to 1000");
  }
  EXPECT_EQ(parseSettings({{"STRAGGLER_WINDOW", "1"}}).window, 1);
  EXPECT_EQ(parseSettings({{"STRAGGLER_WINDOW", "1000"}}).window, 1000);
}

TEST(Settings, emptyFolderIsRefused) { EXPECT_TRUE(contains(refusal({{"STRAGGLER_DIR", ""}}), "STRAGGLER_DIR=''")); }

TEST(Settings, interceptTakesNamesOfBackendsThatCanBeWrapped) {
  for (const char* value : {"gloo", "nccl", "gloo,nccl", "nccl,gloo"}) {
    EXPECT_EQ(refusal({{"STRAGGLER_INTERCEPT", value}}), "") << value;
  }
  for (const char* value : {"", "mpi", "Gloo", "gloo,", ",gloo", "gloo nccl", "gloo, nccl", "gloo,mpi"}) {
    EXPECT_TRUE(contains(refusal({{"STRAGGLER_INTERCEPT", value}}), "allowed: gloo, nccl, or gloo,nccl")) << value;
  }
}

TEST(Settings, ruleIsOneOfThoseThereAre) {
  for (const char* value : {"self_time", "mean_multiple", "moving_average", "median"}) {
    EXPECT_EQ(parseSettings({{"STRAGGLER_RULE", value}}).rule, value);
  }
  for (const char* value : {"", "mean", "Median", "median ", "self_time,median"}) {
    EXPECT_TRUE(
        contains(refusal({{"STRAGGLER_RULE", value}}), "allowed: self_time, mean_multiple, moving_average, or median"))
        << value;
  }
}

TEST(Settings, multiplierIsANumberAboveOne) {
  EXPECT_EQ(parseSettings({{"STRAGGLER_MULTIPLIER", "1.05"}}).multiplier, 1.05);
  EXPECT_EQ(parseSettings({{"STRAGGLER_MULTIPLIER", "3"}}).multiplier, 3.0);
  for (const char* value : {"", "1", "0.5", "-2", "inf", "nan", "1e999", "2,0", " 2", "2x", "two"}) {
    EXPECT_TRUE(contains(refusal({{"STRAGGLER_MULTIPLIER", value}}), "allowed: a number above 1")) << value;
  }
}

TEST(Settings, mitigationIsOffUnlessAskedFor) {
  const Settings settings = parseSettings({});
  EXPECT_EQ(settings.mitigate, "off");
  EXPECT_EQ(settings.staleness, 8);
  EXPECT_EQ(settings.graceMs, std::nullopt);
  EXPECT_EQ(settings.quorum.of(8), 4);
  EXPECT_EQ(parseSettings({{"STRAGGLER_MITIGATE", "carry"}}).mitigate, "carry");
  for (const char* value : {"", "on", "Carry", "partial"}) {
    EXPECT_TRUE(contains(refusal({{"STRAGGLER_MITIGATE", value}}), "allowed: off, carry, or drop")) << value;
  }
}

TEST(Settings, stalenessIsAtLeastOneStep) {
  EXPECT_EQ(parseSettings({{"STRAGGLER_STALENESS", "1024"}}).staleness, 1024);
  for (const char* value : {"", "0", "-1", "1025", "8.5", "eight"}) {
    EXPECT_TRUE(contains(refusal({{"STRAGGLER_STALENESS", value}}), "allowed: a whole number from 1 to 1024")) << value;
  }
}

TEST(Settings, graceIsMeasuredOrGiven) {
  EXPECT_EQ(parseSettings({{"STRAGGLER_GRACE_MS", "auto"}}).graceMs, std::nullopt);
  EXPECT_EQ(parseSettings({{"STRAGGLER_GRACE_MS", "0"}}).graceMs, 0);
  EXPECT_EQ(parseSettings({{"STRAGGLER_GRACE_MS", "2.5"}}).graceMs, 2.5);
  for (const char* value : {"", "-1", "nan", "inf", "3600001", "5ms"}) {
    EXPECT_TRUE(contains(refusal({{"STRAGGLER_GRACE_MS", value}}), "allowed: auto, or a number from 0 to 3600000"))
        << value;
  }
}

TEST(Settings, quorumIsANumberOfRanksOrAShare) {
  const auto quorum = [](const char* value, int ranks) {
    return parseSettings({{"STRAGGLER_QUORUM", value}}).quorum.of(ranks);
  };
  EXPECT_EQ(quorum("0.5", 3), 2);
  EXPECT_EQ(quorum("0.01", 8), 1);
  EXPECT_EQ(quorum("0.99", 8), 8);
  EXPECT_EQ(quorum("1", 8), 1);
  EXPECT_EQ(quorum("8", 8), 8);
  EXPECT_THROW(quorum("9", 8), SettingsError);
  for (const char* value : {"", "0", "-1", "1.5", "nan", "half", "1e99"}) {
    EXPECT_TRUE(contains(refusal({{"STRAGGLER_QUORUM", value}}), "or a share below 1")) << value;
  }
}

TEST(Settings, aQuorumAboveTheSizeOfTheGroupSaysWhatIsAllowed) {
  try {
    QuorumSetting{9}.of(4);
    FAIL();
  } catch (const SettingsError& error) {
    EXPECT_TRUE(contains(error.what(), "STRAGGLER_QUORUM='9'"));
    EXPECT_TRUE(contains(error.what(), "from 1 to 4, or a share below 1"));
  }
}

TEST(Settings, rowsSayWhereAValueComesFrom) {
  const auto rows = settingRows({{"STRAGGLER_DIR", "/tmp/records"}});
  const SettingRow& directory = row(rows, "STRAGGLER_DIR");
  EXPECT_TRUE(directory.fromEnvironment);
  EXPECT_EQ(directory.value, "/tmp/records");
  EXPECT_EQ(directory.defaultValue, std::nullopt);
  const SettingRow& window = row(rows, "STRAGGLER_WINDOW");
  EXPECT_FALSE(window.fromEnvironment);
  EXPECT_EQ(window.value, "10");
  EXPECT_EQ(window.defaultValue, "10");
  EXPECT_EQ(window.type, "whole number");
  EXPECT_EQ(window.unit, "steps");
}

TEST(Settings, defaultsOfTheTableAreThoseOfTheStruct) {
  const auto rows = settingRows({});
  EXPECT_EQ(row(rows, "STRAGGLER_WINDOW").value, std::to_string(Settings{}.window));
  EXPECT_EQ(row(rows, "STRAGGLER_RULE").value, Settings{}.rule);
  EXPECT_EQ(std::stod(*row(rows, "STRAGGLER_MULTIPLIER").value), Settings{}.multiplier);
}

TEST(Settings, everyRowIsComplete) {
  for (const auto& setting : settingRows({})) {
    EXPECT_TRUE(setting.name.starts_with("STRAGGLER_"));
    EXPECT_NE(setting.type, "") << setting.name;
    EXPECT_EQ(setting.unit.empty(), !setting.type.ends_with("number")) << setting.name;
    EXPECT_NE(setting.allowed, "") << setting.name;
    EXPECT_NE(setting.text, "") << setting.name;
  }
}

TEST(Settings, onlyNamesWithThePrefixAreReadFromTheEnvironment) {
  ASSERT_EQ(setenv("STRAGGLER_WINDOW", "7=8", 1), 0);
  ASSERT_EQ(setenv("NOT_STRAGGLER_WINDOW", "9", 1), 0);
  const Environment environment = readEnvironment();
  unsetenv("STRAGGLER_WINDOW");
  unsetenv("NOT_STRAGGLER_WINDOW");
  EXPECT_NE(
      std::find(environment.begin(), environment.end(), std::pair<std::string, std::string>("STRAGGLER_WINDOW", "7=8")),
      environment.end());
  for (const auto& [name, value] : environment) {
    EXPECT_TRUE(name.starts_with("STRAGGLER_")) << name;
  }
}

}  // namespace
}  // namespace straggler
