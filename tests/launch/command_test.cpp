// SPDX-License-Identifier: Apache-2.0
#include "launch/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "launch/brief_command.h"
#include "launch/clock.h"
#include "launch/processes.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

BriefResult run(std::vector<std::string> argv, double timeout_s = 20) {
  CommandSpec spec;
  spec.argv = std::move(argv);
  return run_briefly(spec, timeout_s);
}

TEST(Command, GivesBackWhatItSaidAndHowItEnded) {
  const BriefResult result = run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.errors, "err\n");
}

TEST(Command, GivesItsErrorsAloneIfAsked) {
  CommandSpec spec;
  spec.argv = {"sh", "-c", "echo gone; echo err >&2"};
  spec.pipe_errors = true;
  spec.out_to_errors = true;  // ours
  const StartedCommand started = start_command(spec);
  EXPECT_FALSE(started.out.is_open());
  std::array<char, 64> buffer;
  const ssize_t got = ::read(started.errors.get(), buffer.data(), buffer.size());
  EXPECT_EQ(std::string(buffer.data(), static_cast<std::size_t>(got)), "err\n");
  EXPECT_EQ(::waitpid(started.pid, nullptr, 0), started.pid);
}

TEST(Command, NamesTheSignalThatEndedIt) {
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
}

TEST(Command, IsEndedWhenItTakesTooLong) {
  const auto start = Clock::now();
  EXPECT_FALSE(run({"sleep", "60"}, 0.2).in_time);
  EXPECT_LT(seconds_since(start), 30);
}

TEST(Command, SaysWhatCannotBeStarted) {
  EXPECT_THAT([] { run({"no-such-program"}); },
              ThrowsMessage<InfrastructureError>(HasSubstr("cannot start no-such-program")));
  CommandSpec spec;
  spec.argv = {"true"};
  spec.directory = "/no/such/folder";
  EXPECT_THAT([&] { run_briefly(spec, 5); },
              ThrowsMessage<InfrastructureError>(HasSubstr("/no/such/folder")));
}

TEST(Command, ItsOwnVariablesWin) {
  CommandSpec spec;
  spec.argv = {"sh", "-c", "echo $GRADCHECK_A-$HOME"};
  spec.environment = {{"GRADCHECK_A", "1"}, {"HOME", "elsewhere"}};
  EXPECT_EQ(run_briefly(spec, 20).out, "1-elsewhere\n");
}

// An interpreter's folder is put before PATH so that its torchrun is the one that runs.
TEST(Command, IsLookedUpOnItsOwnPath) {
  const auto folder = std::filesystem::temp_directory_path() / "gradcheck-command-test";
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink("/bin/echo", folder / "gradcheck-own-tool");
  CommandSpec spec;
  spec.argv = {"gradcheck-own-tool", "found"};
  spec.environment = {{"PATH", folder.string() + ":/bin"}};
  EXPECT_EQ(run_briefly(spec, 20).out, "found\n");
  std::filesystem::remove_all(folder);
}

// torchrun's workers lead sessions of their own, and ignore what their launcher is sent.
TEST(Processes, EndsWhatHasItsOwnSessionAndIgnoresSigterm) {
  become_subreaper();
  CommandSpec spec;
  spec.argv = {"sh", "-c", "setsid sh -c 'trap \"\" TERM; sleep 61' & echo started; wait"};
  spec.pipe_output = true;
  StartedCommand started = start_command(spec);
  std::array<char, 16> buffer{};
  ASSERT_GT(::read(started.out.get(), buffer.data(), buffer.size()), 0);
  ASSERT_FALSE(descendants({}).empty());
  end_descendants(0.2, {});
  EXPECT_TRUE(descendants({}).empty());
  ::waitpid(started.pid, nullptr, 0);
}

TEST(Processes, SparesWhatItIsToldTo) {
  CommandSpec spec;
  spec.argv = {"sleep", "60"};
  const StartedCommand spared = start_command(spec);
  const StartedCommand other = start_command(spec);
  end_descendants(0.2, {spared.pid});
  EXPECT_EQ(::waitpid(spared.pid, nullptr, WNOHANG), 0);
  EXPECT_EQ(::waitpid(other.pid, nullptr, WNOHANG), other.pid);
  end_descendants(0.2, {});
  ::waitpid(spared.pid, nullptr, 0);
}

}  // namespace
}  // namespace gradcheck
