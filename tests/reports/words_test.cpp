// SPDX-License-Identifier: Apache-2.0
#include "reports/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "made_up_reports.h"

namespace gradcheck::test {
namespace {

using testing::ElementsAre;

TEST(Words, CountsNeverClaimWhatWasNotTested) {
  EXPECT_EQ(counts_text(unreduced_arm()), "310/310 differed");
  EXPECT_EQ(counts_text(wrong_arm()), "0/310 differed, 310 wrong");
  EXPECT_EQ(counts_text(one_rank_arm()), "310 tensors, agreement not tested");
  EXPECT_EQ(counts_text(died_arm()), "nothing compared, 310 unrecorded");
  EXPECT_EQ(counts_text(skipped_arm()), "skipped");
  EXPECT_EQ(counts_text(ArmReport{}), "nothing compared");
  ArmReport partial = consistent_arm();
  partial.totals.compared = 12;
  partial.totals.absent = 8;
  EXPECT_EQ(counts_text(partial), "0/310 differed, 290 not compared");
}

TEST(Words, MaxSaysWhetherItIsAnEstimate) {
  ArmReport arm = unreduced_arm();
  EXPECT_EQ(max_text(arm), "max 5.9e-02");
  arm.totals.max_abs_exact = false;
  EXPECT_EQ(max_text(arm), "max ~5.9e-02");
  arm.totals.max_abs = 0;
  EXPECT_EQ(max_text(arm), "max 0");
  arm.totals.max_abs.reset();
  EXPECT_EQ(max_text(arm), "max ?");
  arm.totals.differed = 0;
  EXPECT_EQ(max_text(arm), "");
  EXPECT_EQ(max_text(one_rank_arm()), "");
  EXPECT_EQ(max_text(died_arm()), "");
}

TEST(Words, NaNIsTheWorst) {
  ArmReport arm = unreduced_arm();
  arm.tensors[0].max_abs.reset();
  arm.tensors[2].max_abs = std::numeric_limits<double>::quiet_NaN();
  const auto rows = worst_rows(arm);
  EXPECT_THAT(rows, ElementsAre(&arm.tensors[2], &arm.tensors[1], &arm.tensors[0]));
}

TEST(Words, NamesFitTheirColumns) {
  EXPECT_EQ(names_text({"a", "b"}, 2, 100), "a, b");
  EXPECT_EQ(names_text({"a", "b"}, 310, 100), "a, b, … (+308)");
  EXPECT_EQ(names_text({"aaaaaaaaaa", "bbbbbbbbbb"}, 2, 20), "aaaaaaaaaa, … (+1)");
  EXPECT_EQ(names_text({}, 3, 20), "… (+3)");
}

TEST(Words, RankEnds) {
  const RankRow fine{0, "bye", 0, "done", "bye", "", "", ""};
  EXPECT_TRUE(ended_well(fine));
  for (const char* end : {"signalled", "deadline", "running", "", "later"}) {
    RankRow row = fine;
    row.end = end;
    EXPECT_FALSE(ended_well(row)) << end;
    EXPECT_FALSE(rank_end_text(row).empty());
  }
  EXPECT_FALSE(ended_well({0, "exited", 1, "", "", "", "", ""}));
  EXPECT_FALSE(ended_well({0, "bye", 0, "", "", "ValueError", "", ""}));
  EXPECT_EQ(rank_end_text({0, "signalled", 11, "forward", "", "", "", ""}),
            "killed by SIGSEGV in forward");
  EXPECT_EQ(rank_end_text({0, "signalled", 999, "", "", "", "", ""}), "killed by signal 999");
}

TEST(Words, AnArmThatCouldNotBeJudgedSaysWhatStoppedIt) {
  EXPECT_EQ(ending_text(raised_arm()), "could not judge: raised");
  EXPECT_EQ(ending_text(died_arm()), "could not judge: died");
  EXPECT_EQ(ending_text(late_arm()), "could not judge: deadline");
  EXPECT_EQ(ending_text(inconclusive_arm()), "could not judge");
  EXPECT_EQ(ending_text(not_started_arm("a")), "could not judge");
  ArmReport expected_to_die = died_arm();
  expected_to_die.verdict = Verdict::pass;
  EXPECT_EQ(ending_text(expected_to_die), "as expected");
  ArmReport noted = inconclusive_arm();  // a rank that died after its evidence was complete
  noted.findings.insert(noted.findings.begin(), {802, Severity::note, "", "", 0, {}, {}, 0, ""});
  EXPECT_EQ(ending_text(noted), "could not judge");
}

// A rank of which nothing is known is not one that ended well.
TEST(Words, AnEmptyRankRowClaimsNothing) {
  EXPECT_FALSE(ended_well(RankRow{}));
  EXPECT_EQ(rank_end_text(RankRow{}), "end not known");
}

TEST(Words, RanksWithoutARowAreNamed) {
  ArmReport arm = half_known_report().scenarios[0].arms[0];
  EXPECT_EQ(ranks_without_row(arm), "rank 2");
  arm.world_size = 2;
  EXPECT_EQ(ranks_without_row(arm), "");
  arm.world_size = 1;  // more rows than ranks
  EXPECT_EQ(ranks_without_row(arm), "");
  arm.world_size = std::numeric_limits<int>::max();
  EXPECT_EQ(ranks_without_row(arm), "2147483645 of 2147483647 ranks");
  arm.ranks.clear();
  EXPECT_EQ(ranks_without_row(arm), "");
}

TEST(Words, RerunNamesTheScenarioAsItWasGiven) {
  const Report report = failed_report();
  ScenarioReport scenario = report.scenarios[0];
  const ArmReport& arm = scenario.arms[1];
  EXPECT_EQ(rerun_text(report.run, scenario, arm),
            "gradcheck --scenario kto_liger_ddp --arm redirected -v");
  RunInfo by_path = report.run;
  by_path.argv = {"gradcheck", "--scenario", scenario.file};
  EXPECT_EQ(rerun_text(by_path, scenario, arm),
            "gradcheck --scenario scenarios/kto_liger_ddp.json --arm redirected -v");
  scenario.name = "a[ranks=4]";
  EXPECT_EQ(rerun_text(report.run, scenario, arm),
            "gradcheck --scenario 'a[ranks=4]' --arm redirected -v");
  scenario.file.clear();
  EXPECT_EQ(rerun_text(report.run, scenario, arm), "");
}

TEST(Words, NextStepsAreSaidOnce) {
  ArmReport arm = failed_arm();
  arm.causes.push_back(arm.causes[0]);
  EXPECT_EQ(next_steps(arm).size(), 1U);
  arm.causes.clear();
  EXPECT_THAT(next_steps(arm), ElementsAre("Compute the loss through the wrapper's forward."));
}

TEST(Words, Summary) {
  EXPECT_EQ(summary_text(mixed_report()), "5 scenarios, 6 arms: 1 pass, 1 fail, 2 error, 1 skip");
  EXPECT_EQ(summary_text(Report{}), "nothing was run");
}

}  // namespace
}  // namespace gradcheck::test
