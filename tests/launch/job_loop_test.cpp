// SPDX-License-Identifier: Apache-2.0
#include "launch/job_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "model/errors.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class JobLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("gradcheck-loop-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string socket() const { return (folder_ / "s").string(); }

  JobEvents events() {
    return {[this](int, std::string_view line) { lines_.emplace_back(line); },
            [this](int, std::string_view rest) { rests_.emplace_back(rest); },
            [this](int process, Stream stream, std::string_view line) {
              const std::string where = stream == Stream::out ? "out" : "err";
              output_.push_back(std::to_string(process) + where + ":" + std::string(line));
            },
            [this](const CommandExit& exit) { exits_.push_back(exit); }};
  }

  // What a rank does: connects, says things, and leaves.
  CommandSpec client(const std::string& python) {
    CommandSpec spec;
    spec.argv = {"python3", "-c",
                 "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('" + socket() +
                     "')\n" + python};
    spec.pipe_output = true;
    return spec;
  }

  void run(JobLoop& loop) {
    const auto limit = after(30);
    while (Clock::now() < limit) {
      if (loop.all_exited() && loop.all_closed() && loop.outputs_closed()) return;
      loop.turn(after(0.1), -1);
    }
    FAIL() << "the job did not end";
  }

  std::filesystem::path folder_;
  std::vector<std::string> lines_, rests_, output_;
  std::vector<CommandExit> exits_;
};

TEST_F(JobLoopTest, PassesLinesOutputAndExitsOn) {
  JobLoop loop(socket(), events());
  loop.start(
      client("s.sendall(b'one\\ntwo\\nhalf')\nprint('said', flush=True)\nraise SystemExit(4)"));
  run(loop);
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
  EXPECT_THAT(rests_, ElementsAre("half"));
  EXPECT_THAT(output_, ElementsAre("0out:said"));
  ASSERT_EQ(exits_.size(), 1u);
  EXPECT_EQ(exits_[0].status, 4);
}

TEST_F(JobLoopTest, ShowsTheLastLineWithoutItsNewline) {
  JobLoop loop(socket(), events());
  CommandSpec spec;
  spec.argv = {"sh", "-c", "printf 'no newline' >&2; kill -6 $$"};
  spec.pipe_output = true;
  loop.start(spec);
  run(loop);
  EXPECT_THAT(output_, ElementsAre("0err:no newline"));
  EXPECT_EQ(exits_[0].signal, 6);
}

TEST_F(JobLoopTest, AnswersReachTheRank) {
  JobLoop* sender = nullptr;
  JobEvents with_answer = events();
  with_answer.line = [&](int connection, std::string_view line) {
    lines_.emplace_back(line);
    if (line == "ask") sender->send(connection, "answer");
  };
  JobLoop loop(socket(), with_answer);
  sender = &loop;
  loop.start(client("s.sendall(b'ask\\n')\ns.sendall(b'got ' + s.recv(100))"));
  run(loop);
  EXPECT_THAT(lines_, ElementsAre("ask", "got answer"));
}

TEST_F(JobLoopTest, SendingToARankThatHasGoneIsNoError) {
  JobLoop loop(socket(), events());
  loop.start(client("s.sendall(b'x\\n')"));
  run(loop);
  loop.send(0, "too late");
  EXPECT_FALSE(loop.is_open(0));
}

TEST(JobLoop, RefusesAPathThatIsNoSocketAddress) {
  EXPECT_THAT([] { JobLoop(std::string(200, 'x'), {}); },
              ThrowsMessage<InfrastructureError>(HasSubstr("TMPDIR")));
}

}  // namespace
}  // namespace gradcheck
