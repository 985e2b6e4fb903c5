#include "backend/report/record_file.h"

#include <sys/resource.h>

#include <csignal>

#include <gtest/gtest.h>

#include "backend/base/settings.h"
#include "tests/fakes/temporary_folder.h"

namespace straggler {
namespace {

class RecordFileTest : public testing::Test {
 protected:
  RecordFile::Complain complain() {
    return [this](const std::string& reason) { complaints_.push_back(reason); };
  }
  std::string refusal(const std::filesystem::path& folder, const std::string& name) {
    try {
      const RecordFile file(folder.string(), name, complain());
    } catch (const SettingsError& error) {
      return error.what();
    }
    return {};
  }

  TemporaryFolder folder_;
  std::vector<std::string> complaints_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(RecordFileTest, linesAreWrittenAtTheLatestWhenItEnds) {
  {
    RecordFile file(folder_.path().string(), "job.jsonl", complain());
    file.line("{\"a\":1}");
    EXPECT_TRUE(linesOf(folder_ / "job.jsonl").empty()) << "lines are gathered";
    file.flush();
    EXPECT_EQ(linesOf(folder_ / "job.jsonl").size(), 1U);
    file.line("{\"b\":2}");
  }
  EXPECT_EQ(linesOf(folder_ / "job.jsonl"), (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"}));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(RecordFileTest, manyLinesAreWrittenInPieces) {
  RecordFile file(folder_.path().string(), "job.jsonl", complain());
  for (int i = 0; i < 1000; ++i) {
    file.line(std::string(200, 'x'));
  }
  EXPECT_GT(linesOf(folder_ / "job.jsonl").size(), 900U);
}

TEST_F(RecordFileTest, missingFolderIsMade) {
  const RecordFile file((folder_ / "a/b/c").string(), "job.jsonl", complain());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a/b/c/job.jsonl"));
}

TEST_F(RecordFileTest, earlierRecordsStay) {
  for (int run = 0; run < 2; ++run) {
    RecordFile file(folder_.path().string(), "job.jsonl", complain());
    file.line("run");
  }
  EXPECT_EQ(linesOf(folder_ / "job.jsonl").size(), 2U);
}

TEST_F(RecordFileTest, folderThatCannotBeWrittenIsRefusedWithPathAndReason) {
  { const std::ofstream file(folder_ / "file"); }
  const std::string inFile = refusal(folder_ / "file/records", "job.jsonl");
  EXPECT_TRUE(contains(inFile, "STRAGGLER_DIR='" + (folder_ / "file/records").string() + "'")) << inFile;
  EXPECT_TRUE(contains(inFile, "Not a directory")) << inFile;
  EXPECT_TRUE(contains(inFile, "name a folder that can be written")) << inFile;
  EXPECT_NE(refusal("/proc/no-such-folder", "job.jsonl"), "");
}

TEST_F(RecordFileTest, symbolicLinkIsRefused) {
  std::filesystem::create_symlink(folder_ / "target", folder_ / "job.jsonl");
  EXPECT_TRUE(contains(refusal(folder_.path(), "job.jsonl"), (folder_ / "job.jsonl").string()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "target"));
}

TEST_F(RecordFileTest, folderThatIsRemovedCostsLinesAndOneComplaint) {
  RecordFile file((folder_ / "records").string(), "job.jsonl", complain());
  file.line("kept");
  file.flush();
  std::filesystem::remove_all(folder_ / "records");
  for (int i = 0; i < 3; ++i) {
    file.line("lost");
    file.line("lost");
    file.flush();
  }
  EXPECT_EQ(file.linesLost(), 6U);
  ASSERT_EQ(complaints_.size(), 1U);
  EXPECT_TRUE(contains(complaints_.front(), "records/job.jsonl: the file was removed")) << complaints_.front();
}

TEST_F(RecordFileTest, fullDiskCostsLinesAndOneComplaint) {
  RecordFile file("/dev", "full", complain());
  for (int i = 0; i < 3; ++i) {
    file.line("lost");
    file.flush();
  }
  EXPECT_EQ(file.linesLost(), 3U);
  ASSERT_EQ(complaints_.size(), 1U);
  EXPECT_EQ(complaints_.front(), "/dev/full: No space left on device");
}

TEST_F(RecordFileTest, writingGoesOnWhenThereIsSpaceAgainAndSpoilsNoLine) {
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  RecordFile file(folder_.path().string(), "job.jsonl", complain());
  const struct rlimit small { 35, old.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 6; ++i) {
    file.line("line-" + std::to_string(i) + "xxx");  // ten bytes with the newline: three and a half fit
  }
  file.flush();
  file.line("lost");
  file.flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, previous);
  file.line("after");
  file.flush();
  EXPECT_EQ(linesOf(folder_ / "job.jsonl"),
            (std::vector<std::string>{"line-0xxx", "line-1xxx", "line-2xxx", "line-", "after"}));
  EXPECT_EQ(file.linesLost(), 4U) << "three that did not fit, and the one after them";
}

}  // namespace
}  // namespace straggler
