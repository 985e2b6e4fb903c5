// A forked child does not own its parent's session, and can have one of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/fakes/sessions.h"

#if defined(__SANITIZE_THREAD__)
#define STRAGGLER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STRAGGLER_THREAD_SANITIZER 1
#endif
#endif

namespace straggler {
namespace {

class SessionForkTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef STRAGGLER_THREAD_SANITIZER
    GTEST_SKIP() << "ThreadSanitizer allows no threads after a fork; the other presets run this test";
#endif
  }
  ~SessionForkTest() override { endSession(); }

  std::shared_ptr<Session> join(SessionOutput& output) {
    return joinSession({"0", "", "gloo", {0}}, [&output] { return output.options(); });
  }
  // What the child exits with: 0 if every step of `body` holds.
  int inChild(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a child that hangs is killed
      _exit(body() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  SessionOutput output_;
};

TEST_F(SessionForkTest, childDoesNotTouchItsParentsSession) {
  const auto session = join(output_);
  EXPECT_EQ(inChild([&] {
              if (session->owned()) {
                return false;
              }
              session->end();
              leaveSession(session);
              endSession();
              return !lastReport();
            }),
            0);
  EXPECT_EQ(output_.text().find("NO VERDICT"), std::string::npos) << "the parent's session runs";
  leaveSession(session);
  EXPECT_EQ(output_.count("NO VERDICT"), 1U);
}

TEST_F(SessionForkTest, childCanHaveASessionOfItsOwn) {
  const auto session = join(output_);
  EXPECT_EQ(inChild([&] {
              SessionOutput own;
              const auto mine = join(own);
              const bool isNew = mine != session && mine->owned();
              leaveSession(mine);
              return isNew && own.count("NO VERDICT") == 1;
            }),
            0);
  EXPECT_TRUE(session->owned());
}

TEST_F(SessionForkTest, fiftyForksWhileTheSessionWorksDoNotHang) {
  const auto session = join(output_);
  // Holds the session's locks nearly all the time, so that a child is born with one of them locked for ever.
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      session->addGroup({"1", "", "gloo", {1}});
      session->setMitigation([] { return MitigationSummary{}; });
      (void)session->report();
    }
  });
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    const int status = inChild([&] {
      session->addGroup({"2", "", "gloo", {1}});
      session->setMitigation({});
      leaveSession(session);
      return !session->report();
    });
    failed += status == 0 ? 0 : 1;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace straggler
