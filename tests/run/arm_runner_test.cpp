// SPDX-License-Identifier: Apache-2.0
#include "run/arm_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/errors.h"

namespace gradcheck {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Runs one arm on tests/support/fake_rank.py, which speaks the zygote's protocol without LibTorch.
class FakeArm : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("gradcheck-arm-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    host_ = real_host();
    host_.temporary_directory = folder_.string();
    scenario_.name = "fake";
    scenario_.ranks = 2;
    scenario_.timeout_s = 60;
    arm_.name = "only";
    arm_.program.native = NativeProgram{};
    arm_.program.native->wrapper.kind = "ddp";
  }
  void TearDown() override {
    ::unsetenv("GRADCHECK_FAKE");
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "a run directory was left behind";
    std::filesystem::remove_all(folder_);
  }

  ArmReport run(const char* behaviour) {
    ::setenv("GRADCHECK_FAKE", behaviour, 1);
    ArmOptions options;
    options.rank_binary = GRADCHECK_SOURCE_DIR "/tests/support/fake_rank.py";
    ArmRunner runner(host_, interrupt_, options);
    return runner.run(scenario_, arm_, "run");
  }

  std::filesystem::path folder_;
  Host host_;
  InterruptWatch interrupt_;
  Scenario scenario_;
  Arm arm_;
};

bool has_code(const ArmReport& report, int code) {
  for (const Finding& finding : report.findings) {
    if (finding.code == code) return true;
  }
  return false;
}

TEST_F(FakeArm, HealthyRanksAreConsistent) {
  const ArmReport report = run("");
  EXPECT_EQ(report.outcome, Outcome::consistent) << report.headline;
  EXPECT_EQ(report.verdict, Verdict::pass) << report.reason;
  EXPECT_EQ(report.totals.inventory, 1);
  EXPECT_EQ(report.totals.differed, 0);
  EXPECT_TRUE(report.totals.bound_used.has_value());
}

TEST_F(FakeArm, ARankThatIsKilledIsNamedAndTheOtherReaped) {
  const ArmReport report = run("kill");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_TRUE(has_code(report, 802));
  ASSERT_EQ(report.ranks.size(), 2U);
  EXPECT_EQ(report.ranks[1].end, "signalled");
  EXPECT_EQ(report.ranks[1].status, SIGKILL);
  EXPECT_EQ(report.ranks[1].phase, "forward");
  EXPECT_THAT(report.ranks[1].stderr_tail, HasSubstr("last words"));
  EXPECT_THAT(report.headline, HasSubstr("rank 1"));
}

TEST_F(FakeArm, ARankThatLeavesWithoutByeIsNamed) {
  const ArmReport report = run("exit");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_TRUE(has_code(report, 802));
  EXPECT_EQ(report.ranks[1].end, "exited");
}

TEST_F(FakeArm, AHangIsADeadlineThatNamesTheSilentRank) {
  scenario_.timeout_s = 5;
  const ArmReport report = run("hang");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_TRUE(has_code(report, 803));
  EXPECT_THAT(report.headline, HasSubstr("rank 1"));
}

TEST_F(FakeArm, ARankThatNeverSpeaksIsADeadline) {
  scenario_.timeout_s = 3;
  const ArmReport report = run("silent");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_TRUE(has_code(report, 803));
}

TEST_F(FakeArm, AnExceptionOfTheProgramIsRaised) {
  const ArmReport report = run("raise");
  EXPECT_EQ(report.outcome, Outcome::raised);
  EXPECT_TRUE(has_code(report, 801));
  EXPECT_EQ(report.ranks[1].exception_text, "made-up failure");
}

TEST_F(FakeArm, NonsenseOnTheChannelIsNeverAPass) {
  const ArmReport report = run("garbage");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_THAT(report.notes, Contains(HasSubstr("rank 1, line")));
}

TEST_F(FakeArm, ALineWithoutEndIsRefusedAndNotKept) {
  const ArmReport report = run("endless_line");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_THAT(report.notes, Contains(HasSubstr("64 KiB")));
}

TEST_F(FakeArm, AHangAtExitLeavesTheVerdictStanding) {
  const ArmReport report = run("hang_at_exit");
  EXPECT_EQ(report.outcome, Outcome::consistent) << report.headline;
  EXPECT_TRUE(has_code(report, 802));
}

TEST_F(FakeArm, AMissingRankProgramIsAnErrorThatSaysWhatToDo) {
  ArmOptions options;
  options.rank_binary = "/nowhere/gradcheck-rank";
  ArmRunner runner(host_, interrupt_, options);
  const ArmReport report = runner.run(scenario_, arm_, "run");
  EXPECT_EQ(report.verdict, Verdict::error);
  EXPECT_THAT(report.headline, HasSubstr("scripts/setup"));
}

TEST_F(FakeArm, OurOwnFailureMeetsNoExpectation) {
  arm_.expect.outcome = Outcome::error;
  ArmOptions options;
  options.rank_binary = "/nowhere/gradcheck-rank";
  ArmRunner runner(host_, interrupt_, options);
  EXPECT_EQ(runner.run(scenario_, arm_, "run").verdict, Verdict::error);
  EXPECT_EQ(run("garbage").verdict, Verdict::error);
  EXPECT_EQ(run("kill").verdict, Verdict::pass) << "the program's own failure does";
}

TEST_F(FakeArm, ArmsOnOtherDataAreAnErrorWhateverTheyExpect) {
  ArmOptions options;
  options.rank_binary = GRADCHECK_SOURCE_DIR "/tests/support/fake_rank.py";
  ArmRunner runner(host_, interrupt_, options);
  EXPECT_EQ(runner.run(scenario_, arm_, "run").verdict, Verdict::pass);
  Arm other = arm_;
  other.name = "other";
  other.program.native->loss_scale = 2;  // the fake takes its data from it
  other.expect.outcome = Outcome::error;
  const ArmReport report = runner.run(scenario_, other, "run");
  EXPECT_EQ(report.verdict, Verdict::error);
  EXPECT_THAT(report.reason, HasSubstr("same data"));
}

TEST_F(FakeArm, APayloadThatIsNotWhatWasRecordedIsRefused) {
  const ArmReport report = run("stale_payload");
  EXPECT_EQ(report.outcome, Outcome::error);
  EXPECT_THAT(report.notes, Contains(HasSubstr("not the tensor that was recorded")));
}

TEST_F(FakeArm, APayloadOutsideTheRunDirectoryIsRefused) {
  EXPECT_THAT(run("stray_payload").notes, Contains(HasSubstr("outside the run")));
}

TEST_F(FakeArm, APayloadThatCouldNotBeWrittenLeavesTheSketches) {
  const ArmReport report = run("no_payload");
  EXPECT_EQ(report.outcome, Outcome::consistent) << report.headline;
}

TEST_F(FakeArm, AZygoteThatNeverAnswersIsEnded) {
  const std::string script = (folder_ / "sleeper").string();
  std::ofstream(script) << "#!/bin/sh\nexec sleep 987\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_THROW(Zygote(script, 0.2, -1), InfrastructureError);
  EXPECT_NE(std::system("pgrep -f '^sleep 987$' >/dev/null"), 0) << "it is still there";
  std::filesystem::remove(script);
}

TEST_F(FakeArm, ARankProgramThatIsNoneIsAnErrorWithItsLastWords) {
  ArmOptions options;
  options.rank_binary = "/bin/false";
  ArmRunner runner(host_, interrupt_, options);
  EXPECT_EQ(runner.run(scenario_, arm_, "run").outcome, Outcome::error);
}

TEST_F(FakeArm, NcclIsSkippedWithItsReason) {
  arm_.program.native->backend = "nccl";
  const ArmReport report = run("");
  EXPECT_EQ(report.verdict, Verdict::skip);
  EXPECT_THAT(report.headline, HasSubstr("no NCCL"));
}

}  // namespace
}  // namespace gradcheck
