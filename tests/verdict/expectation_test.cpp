// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "verdict/judge.h"

namespace gradcheck {
namespace {

using testing::HasSubstr;

ArmReport arm_of(Outcome outcome) {
  ArmReport arm;
  arm.outcome = outcome;
  arm.totals.inventory = 310;
  return arm;
}

ArmReport bypassed() {
  ArmReport arm = arm_of(Outcome::inconsistent);
  arm.totals.differed = 310;
  arm.totals.max_abs = 0.07;
  arm.findings.push_back({201, Severity::error, "", "", 0, {}, {}, 310, ""});
  arm.causes.push_back({Cause::bypass, Confidence::certain, "", "", {}, {}, ""});
  return arm;
}

Expect bypass_expected() {
  Expect expect;
  expect.outcome = Outcome::inconsistent;
  expect.differed = 310;
  expect.of = 310;
  expect.codes = {"GC201"};
  expect.causes = {"bypass"};
  return expect;
}

Verdict verdict_of(ArmReport arm, const Expect& expect, const ExpectationContext& context = {}) {
  apply_expectation(arm, expect, context);
  return arm.verdict;
}

TEST(Expectation, WhatWasExpectedPasses) {
  ArmReport arm = bypassed();
  apply_expectation(arm, bypass_expected(), {});
  EXPECT_EQ(arm.verdict, Verdict::pass) << arm.reason;
  EXPECT_EQ(arm.expected, Outcome::inconsistent);
  EXPECT_TRUE(arm.reason.empty());
}

TEST(Expectation, EveryStatedCountIsDemanded) {
  ArmReport arm = bypassed();
  arm.totals.differed = 309;
  apply_expectation(arm, bypass_expected(), {});
  EXPECT_EQ(arm.verdict, Verdict::fail);
  EXPECT_EQ(arm.reason, "expected 310 differed, saw 309");
  arm = bypassed();
  arm.totals.inventory = 311;
  EXPECT_EQ(verdict_of(arm, bypass_expected()), Verdict::fail);
  arm = bypassed();
  arm.findings.clear();
  EXPECT_EQ(verdict_of(arm, bypass_expected()), Verdict::fail);
  arm = bypassed();
  arm.causes.clear();
  EXPECT_EQ(verdict_of(arm, bypass_expected()), Verdict::fail);
}

TEST(Expectation, NothingStatedMeansConsistent) {
  EXPECT_EQ(verdict_of(arm_of(Outcome::consistent), {}), Verdict::pass);
  EXPECT_EQ(verdict_of(bypassed(), {}), Verdict::fail);
}

TEST(Expectation, WhatCouldNotBeJudgedIsAnErrorUnlessExpected) {
  for (const Outcome outcome : {Outcome::inconclusive, Outcome::error, Outcome::raised}) {
    EXPECT_EQ(verdict_of(arm_of(outcome), {}), Verdict::error);
    EXPECT_EQ(verdict_of(arm_of(outcome), bypass_expected()), Verdict::error);
    Expect expect;
    expect.outcome = outcome;
    EXPECT_EQ(verdict_of(arm_of(outcome), expect), Verdict::pass);
    EXPECT_EQ(verdict_of(arm_of(Outcome::consistent), expect), Verdict::fail);
  }
}

TEST(Expectation, SkippedIsSkippedAndKeepsItsReason) {
  ArmReport arm = arm_of(Outcome::skipped);
  arm.reason = "one rank";
  apply_expectation(arm, bypass_expected(), {});
  EXPECT_EQ(arm.verdict, Verdict::skip);
  EXPECT_EQ(arm.reason, "one rank");
  arm.reason.clear();
  arm.headline = "skipped: no CUDA device";
  apply_expectation(arm, {}, {});
  EXPECT_EQ(arm.reason, "no CUDA device");
}

TEST(Expectation, RaisedMustMatchTextAndRanks) {
  ArmReport arm = arm_of(Outcome::raised);
  arm.ranks.resize(2);
  arm.ranks[0].rank = 0;
  arm.ranks[1].rank = 1;
  arm.ranks[1].exception_type = "RuntimeError";
  arm.ranks[1].exception_text = "Expected to have finished reduction";
  Expect expect;
  expect.outcome = Outcome::raised;
  expect.raises = RaisesExpectation{"finished reduction", {1}};
  EXPECT_EQ(verdict_of(arm, expect), Verdict::pass);
  expect.raises->text = "out of memory";
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
  expect.raises = RaisesExpectation{"finished reduction", {}};
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
  expect.raises = RaisesExpectation{"finished reduction", {7}};
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
}

TEST(Expectation, NanOrUnknownIsNeverInsideABand) {
  Expect expect = bypass_expected();
  expect.max_abs = Band{std::nullopt, std::nullopt};
  ArmReport arm = bypassed();
  EXPECT_EQ(verdict_of(arm, expect), Verdict::pass);
  arm.totals.max_abs = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
  arm.totals.max_abs.reset();
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
  expect.max_abs = Band{0.1, 1.0};
  EXPECT_EQ(verdict_of(bypassed(), expect), Verdict::fail);
}

TEST(Expectation, BandsAreOnlyShownWhereOptionsChangedTheProgram) {
  Expect expect = bypass_expected();
  expect.max_abs = Band{0.1, 1.0};
  ExpectationContext context;
  context.overridden = true;
  EXPECT_EQ(verdict_of(bypassed(), expect, context), Verdict::pass);
  expect.differed = 1;
  EXPECT_EQ(verdict_of(bypassed(), expect, context), Verdict::fail);
}

TEST(Expectation, LaterMatchingConditionWins) {
  Expect expect = bypass_expected();
  expect.differed = 1;
  ExpectOverride wide, narrow;
  wide.condition.ranks = {2, 4};
  wide.expect.differed = 2;
  narrow.condition.dtypes = {"bf16"};
  narrow.expect.differed = 310;
  expect.when = {wide, narrow};
  EXPECT_EQ(verdict_of(bypassed(), expect, {2, "bf16"}), Verdict::pass);
  EXPECT_EQ(verdict_of(bypassed(), expect, {2, "fp32"}), Verdict::fail);
}

TEST(Expectation, WarningFailsOnlyWhereAskedFor) {
  ArmReport arm = arm_of(Outcome::consistent);
  arm.findings.push_back({210, Severity::warning, "", "", 0, {}, {}, 1, ""});
  EXPECT_EQ(verdict_of(arm, {}), Verdict::pass);
  ExpectationContext context;
  context.fail_on = Severity::warning;
  EXPECT_EQ(verdict_of(arm, {}, context), Verdict::fail);
}

TEST(Expectation, OneRankCannotShowThatRanksDisagree) {
  EXPECT_TRUE(needs_agreement(bypass_expected(), {1, "fp32"}));
  EXPECT_FALSE(needs_agreement(bypass_expected(), {2, "fp32"}));
  EXPECT_FALSE(needs_agreement({}, {1, "fp32"}));
}

ArmReport with_reading(Outcome outcome, double max_abs) {
  ArmReport arm = arm_of(outcome);
  LogProbArm judged;
  judged.name = "policy";
  judged.reading.outcome = outcome;
  judged.reading.bitwise = max_abs == 0;
  judged.reading.statistics.max_abs = max_abs;
  arm.logp.push_back(judged);
  return arm;
}

Expect log_probs_expected(Outcome outcome, const LogProbExpectation& logp) {
  Expect expect;
  expect.outcome = outcome;
  expect.logp = logp;
  return expect;
}

TEST(Expectation, LogProbsThatNobodyRecordedAreNoPass) {
  LogProbExpectation logp;
  logp.bitwise = true;
  ArmReport arm = arm_of(Outcome::consistent);
  apply_expectation(arm, log_probs_expected(Outcome::consistent, logp), {});
  EXPECT_EQ(arm.verdict, Verdict::fail);
  EXPECT_EQ(arm.reason, "expected log-probs, but none were a test");
}

TEST(Expectation, EveryReadingMustShowWhatIsDemanded) {
  LogProbExpectation logp;
  logp.bitwise = true;
  const Expect expect = log_probs_expected(Outcome::consistent, logp);
  EXPECT_EQ(verdict_of(with_reading(Outcome::consistent, 0), expect), Verdict::pass);
  ArmReport arm = with_reading(Outcome::consistent, 0);
  arm.logp.push_back(with_reading(Outcome::consistent, 1e-9).logp.front());
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
}

TEST(Expectation, TheFirstCauseOfAReadingIsDemanded) {
  LogProbExpectation logp;
  logp.cause = "dropout";
  const Expect expect = log_probs_expected(Outcome::inconsistent, logp);
  ArmReport arm = with_reading(Outcome::inconsistent, 0.5);
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
  std::vector<CauseClaim>& causes = arm.logp.front().reading.causes;
  causes.push_back({Cause::dropout, Confidence::certain, "", "", {}, {}, ""});
  EXPECT_EQ(verdict_of(arm, expect), Verdict::pass);
  causes.insert(causes.begin(), {Cause::shift, Confidence::certain, "", "", {}, {}, ""});
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
}

TEST(Expectation, BandsOfLogProbsAreShownOnlyWhereOptionsOverride) {
  LogProbExpectation logp;
  logp.max_abs = Band{std::nullopt, 0.1};
  const Expect expect = log_probs_expected(Outcome::inconsistent, logp);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(verdict_of(with_reading(Outcome::inconsistent, 0.05), expect), Verdict::pass);
  EXPECT_EQ(verdict_of(with_reading(Outcome::inconsistent, 0.5), expect), Verdict::fail);
  EXPECT_EQ(verdict_of(with_reading(Outcome::inconsistent, nan), expect), Verdict::fail);
  ExpectationContext overridden;
  overridden.overridden = true;
  EXPECT_EQ(verdict_of(with_reading(Outcome::inconsistent, 0.5), expect, overridden),
            Verdict::pass);
}

TEST(Expectation, AReferenceThatWasNotReadIsInNoBand) {
  LogProbExpectation logp;
  logp.reference = Band{std::nullopt, 1};
  const Expect expect = log_probs_expected(Outcome::consistent, logp);
  ArmReport arm = with_reading(Outcome::consistent, 0);
  EXPECT_EQ(verdict_of(arm, expect), Verdict::fail);
  arm.logp.front().reading.pairs.push_back({"new - ref", 8, 0, 0, 0.5, 0});
  EXPECT_EQ(verdict_of(arm, expect), Verdict::pass);
}

TEST(Expectation, LogProbsNeedNoSecondRank) {
  ExpectationContext one_rank;
  one_rank.ranks = 1;
  LogProbExpectation logp;
  logp.outcome = Outcome::inconsistent;
  EXPECT_FALSE(needs_agreement(log_probs_expected(Outcome::inconsistent, logp), one_rank));
  EXPECT_TRUE(needs_agreement(bypass_expected(), one_rank));
}

}  // namespace
}  // namespace gradcheck
