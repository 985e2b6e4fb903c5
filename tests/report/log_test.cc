#include "backend/report/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <gtest/gtest.h>

namespace straggler {
namespace {

// A pipe of which both ends go with the test.
struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    closeWriter();
    close(ends[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends[1]; }
  void closeWriter() {
    if (ends[1] >= 0) {
      close(std::exchange(ends[1], -1));
    }
  }
  std::string readAll() {
    closeWriter();
    std::string all;
    std::array<char, 4096> piece{};
    for (ssize_t n = 1; n > 0;) {
      n = read(ends[0], piece.data(), piece.size());
      all.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
    return all;
  }

  std::array<int, 2> ends{};
};

TEST(DescriptorLog, writesEveryLineWithOneNewlineAtItsEnd) {
  Pipe pipe;
  DescriptorLog log(pipe.writer());
  log.line(Severity::kInfo, "one");
  log.line(Severity::kWarning, "two\n  lines\n");
  log.flush(std::chrono::hours(1));
  EXPECT_EQ(pipe.readAll(), "one\ntwo\n  lines\n");
}

TEST(DescriptorLog, descriptorThatFailsIsGivenUpSilently) {
  DescriptorLog(-1).line(Severity::kInfo, "nobody reads this");
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  DescriptorLog(full).line(Severity::kInfo, "nor this");
  writeTextNow(full, "nor this");
  close(full);
  writeTextNow(-1, "nor that");
}

TEST(WriteText, longTextIsWrittenWhole) {
  for (auto* write : {&writeText, &writeTextNow}) {
    Pipe pipe;
    const std::string text(20'000, 'x');
    write(pipe.writer(), text);
    EXPECT_EQ(pipe.readAll(), text);
  }
}

TEST(WriteText, nowIsGivenUpWhereThePipeIsFull) {
  Pipe pipe;
  const int capacity = fcntl(pipe.writer(), F_GETPIPE_SZ);
  writeTextNow(pipe.writer(), std::string(static_cast<std::size_t>(2 * capacity), 'x'));
  EXPECT_EQ(pipe.readAll().size(), static_cast<std::size_t>(capacity));
}

}  // namespace
}  // namespace straggler
