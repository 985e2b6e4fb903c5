#include "backend/report/text_reporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "backend/report/text_report.h"
#include "tests/fakes/recording_reporter.h"
#include "tests/fakes/reports.h"
#include "tests/fakes/temporary_folder.h"

namespace straggler {
namespace {

TEST(TextReporter, writesTheArmedLineAndTheReport) {
  const TemporaryFolder folder;
  const int descriptor = open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  TextReporter reporter(descriptor);
  reporter.started({});
  reporter.received({});
  reporter.armed(smallReport());
  reporter.ended(smallReport());
  close(descriptor);
  std::ifstream file(folder / "out");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, armedLine(smallReport()) + textReport(smallReport()));
}

TEST(TextReporter, descriptorThatFailsIsGivenUpSilently) {
  writeText(-1, "nobody reads this\n");
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  writeText(full, "nor this\n");
  close(full);
}

TEST(TextReporter, longTextIsWrittenWhole) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const std::string text(20'000, 'x');
  writeText(ends[1], text);
  close(ends[1]);
  std::string read;
  std::array<char, 4096> piece{};
  for (ssize_t n = 1; n > 0;) {
    n = ::read(ends[0], piece.data(), piece.size());
    read.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
  close(ends[0]);
  EXPECT_EQ(read, text);
}

TEST(CompositeReporter, passesEverythingOnInOrderAndAddsUpWhatWasLost) {
  auto first = std::make_shared<RecordingReporter::Log>();
  auto second = std::make_shared<RecordingReporter::Log>();
  first->lost = 2;
  second->lost = 3;
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(std::make_unique<RecordingReporter>(first));
  reporters.push_back(std::make_unique<RecordingReporter>(second));
  CompositeReporter composite(std::move(reporters));
  composite.started({});
  composite.received({});
  composite.armed({});
  composite.ended({});
  const std::vector<std::string> expected = {"started", "received", "armed", "ended"};
  EXPECT_EQ(first->calls, expected);
  EXPECT_EQ(second->calls, expected);
  EXPECT_EQ(composite.recordsLost(), 5U);
}

}  // namespace
}  // namespace straggler
