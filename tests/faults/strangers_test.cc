// What others put in our way: files of other kinds where records go, and names that are meant for a terminal.
#include <sys/stat.h>

#include <string>

#include <gtest/gtest.h>

#include "backend/base/settings.h"
#include "backend/detect/job_model.h"
#include "backend/report/job_report.h"
#include "backend/report/text_report.h"
#include "backend/session/session.h"
#include "tests/fakes/sessions.h"

namespace straggler {
namespace {

class StrangersTest : public testing::Test {
 protected:
  // Why a session that would write its records to the folder is not made.
  std::string refusal() {
    output_.settings.directory = folder_.path().string();
    try {
      const Session session(output_.options());
    } catch (const SettingsError& error) {
      return error.what();
    }
    return {};
  }

  TemporaryFolder folder_;
  SessionOutput output_;
};

TEST_F(StrangersTest, linkInThePlaceOfEitherRecordFileIsNotFollowed) {
  for (const char* name : {"rank-00000.jsonl", "job.jsonl"}) {
    std::ofstream(folder_ / "target") << "kept\n";
    std::filesystem::create_symlink(folder_ / "target", folder_ / name);
    EXPECT_NE(refusal().find("cannot write " + (folder_ / name).string()), std::string::npos);
    EXPECT_EQ(linesOf(folder_ / "target"), std::vector<std::string>{"kept"});
    std::filesystem::remove(folder_ / name);
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(StrangersTest, pipeInThePlaceOfEitherRecordFileIsNotWaitedFor) {
  for (const char* name : {"rank-00000.jsonl", "job.jsonl"}) {
    ASSERT_EQ(mkfifo((folder_ / name).c_str(), 0600), 0);
    EXPECT_NE(refusal().find("cannot write " + (folder_ / name).string()), std::string::npos);
    std::filesystem::remove(folder_ / name);
  }
}

TEST_F(StrangersTest, recordsAreMadeWithTheUsersUmask) {
  const mode_t before = umask(0077);
  output_.settings.directory = (folder_ / "records").string();
  { const Session session(output_.options()); }
  umask(before);
  const auto permissions = [this](const std::string& name) {
    return std::filesystem::status(folder_ / name).permissions();
  };
  using std::filesystem::perms;
  EXPECT_EQ(permissions("records"), perms::owner_all);
  EXPECT_EQ(permissions("records/job.jsonl"), perms::owner_read | perms::owner_write);
  EXPECT_EQ(permissions("records/rank-00000.jsonl"), perms::owner_read | perms::owner_write);
}

TEST_F(StrangersTest, hostNameThatWouldSteerATerminalIsShownAsPlainText) {
  JobModel model({0, 1}, 10);
  model.apply(Frame{1, {RankHello{"a\x1b[2J\nSTRAGGLER rank 0\x9b", 7, "clock"}}});
  const JobReport report = jobReport(model, 0);
  const std::string text = textReport(report);
  EXPECT_NE(text.find("a?[2J?STRAGGLER rank 0?"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nSTRAGGLER"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(report.row(1)->host, "a?[2J?STRAGGLER rank 0?");
}

}  // namespace
}  // namespace straggler
