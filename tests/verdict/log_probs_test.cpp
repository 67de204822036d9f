// SPDX-License-Identifier: Apache-2.0
#include "verdict/log_probs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::size_t kRows = 64, kTokens = 16;

double to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
}

// Old and new are equal and hold log-probs of all sizes, of which none is a bfloat16 number.
LogProbShard healthy(int rank) {
  LogProbShard shard;
  shard.rank = rank;
  shard.updates = 0;
  for (std::size_t row = 0; row <= kRows; ++row) shard.offsets.push_back(row * kTokens);
  const Values noise = normal(kRows * kTokens, 500 + static_cast<std::uint64_t>(rank));
  for (const double value : noise) {
    shard.old_values.push_back(static_cast<float>(-0.5 - 3 * std::fabs(value)));
  }
  shard.new_values = shard.old_values;
  return shard;
}

LogProbShard coarse(int rank) {
  LogProbShard shard = healthy(rank);
  for (double& value : shard.new_values) value = to_bf16(value);
  return shard;
}

LogProbSet set_of(std::vector<LogProbShard> shards, std::int64_t step = 0) {
  LogProbSet set;
  set.step = step;
  set.name = "train";
  set.source = "gradcheck.log_probs";
  set.shards = std::move(shards);
  return set;
}

// A job whose gradients are in order.
ArmReport judged(const std::vector<LogProbSet>& sets, const std::vector<EventRecord>& calls = {}) {
  Job job;
  JobModel model(job, "Net");
  for (int rank = 0; rank < 2; ++rank) {
    auto& events = job.table().rank(rank).events;
    events.insert(events.end(), calls.begin(), calls.end());
  }
  train(model, 0);
  job.table().finish();
  return gradcheck::judge({job.table(), {}, {}, 0, 0, false, true, std::nullopt, sets});
}

TEST(LogProbs, NoneAreNotSeen) {
  EXPECT_THAT(judged({}).scope.not_checked, Contains("log-probs: not seen"));
}

TEST(LogProbs, EqualOnesPassAndLeaveNothingUnchecked) {
  const ArmReport arm = judged({set_of({healthy(0), healthy(1)})});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.findings, IsEmpty()) << told(arm);
  EXPECT_THAT(arm.scope.not_checked, Not(Contains(HasSubstr("log-probs"))));
  ASSERT_THAT(arm.logp, SizeIs(1));
  EXPECT_EQ(arm.logp[0].reading.outcome, Outcome::consistent);
  EXPECT_TRUE(arm.logp[0].reading.bitwise);
  EXPECT_EQ(arm.logp[0].reading.counts.tokens, static_cast<std::int64_t>(2 * kRows * kTokens));
  EXPECT_THAT(arm.notes, Contains(HasSubstr("log-probs 'train' of step 0: ")));
}

TEST(LogProbs, LowPrecisionFailsThoughGradientsAreRight) {
  const ArmReport arm = judged({set_of({coarse(0), coarse(1)}), set_of({coarse(0), coarse(1)}, 1)});
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_EQ(arm.totals.differed, 0);
  const Finding* finding = find_code_in(arm, 502);
  ASSERT_NE(finding, nullptr) << told(arm);
  EXPECT_THAT(finding->message, HasSubstr("log-probs 'train' of step 0: "));
  EXPECT_THAT(finding->message, HasSubstr("(and in 1 more step)"));
  EXPECT_THAT(arm.headline, HasSubstr("log-probs"));
  ASSERT_THAT(arm.causes, SizeIs(1)) << told(arm);
  EXPECT_EQ(arm.causes[0].cause, Cause::bf16_log_softmax);
  EXPECT_EQ(arm.causes[0].site, "");
}

TEST(LogProbs, TheOnlyLineThatMadeThemInLowPrecisionIsNamed) {
  EventRecord call;
  call.type = EventType::log_softmax;
  call.op = "log_softmax";
  call.dtype = call.result_dtype = "bf16";
  call.grad_mode = true;
  call.classes = 1024;
  call.site = "train.py:33";
  const auto sets = {set_of({coarse(0), coarse(1)})};
  EXPECT_EQ(judged(sets, {call}).causes.at(0).site, "train.py:33");
  EventRecord other = call;
  other.site = "train.py:44";
  EXPECT_EQ(judged(sets, {call, other}).causes.at(0).site, "");
}

TEST(LogProbs, OldThatIsNewIsANoteWhateverTheValues) {
  LogProbShard shard = coarse(0);
  shard.aliased = true;
  shard.updates = std::nullopt;
  const ArmReport arm = judged({set_of({shard, shard})});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  const Finding* finding = find_code_in(arm, 605);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::note);
  EXPECT_THAT(finding->message, HasSubstr("ratio is 1 by construction"));
  EXPECT_THAT(arm.scope.not_checked, Contains(HasSubstr("2 of 2 old is new")));
  EXPECT_THAT(arm.logp, IsEmpty());
}

TEST(LogProbs, AfterAnUpdateOrOfUnknownAgeTheyAreNoTest) {
  LogProbShard late = coarse(0), unknown = coarse(1);
  late.updates = 1;
  unknown.updates = std::nullopt;
  const ArmReport arm = judged({set_of({late, unknown})});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.findings, IsEmpty()) << told(arm);
  EXPECT_THAT(arm.logp, IsEmpty());
  EXPECT_THAT(arm.scope.not_checked,
              Contains("log-probs 'train': 1 of 2 with optimizer steps between old and new"));
  EXPECT_THAT(arm.scope.not_checked, Contains(HasSubstr("1 of 2 where it is not known how many")));
}

TEST(LogProbs, OnlyThoseThatAreATestAreJudged) {
  LogProbShard late = coarse(0);
  late.updates = 2;
  const ArmReport arm = judged({set_of({healthy(0), late, healthy(1)})});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_EQ(arm.logp.at(0).reading.counts.tokens, static_cast<std::int64_t>(2 * kRows * kTokens));
}

TEST(LogProbs, ARankWithoutForbidsConsistent) {
  LogProbSet set = set_of({healthy(0)});
  set.missing = {1};
  const ArmReport arm = judged({set});
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  const Finding* finding = find_code_in(arm, 604);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->message, "log-probs 'train' of step 0: rank 1 handed over none");
}

TEST(LogProbs, RanksOfAnotherGroupNeedNone) {
  Job job(4);
  JobModel model(job, "Net");
  for (int rank = 0; rank < 4; ++rank) {
    const bool first = rank < 2;
    const GroupRecord group{first ? "ranks 0,1" : "ranks 2,3",
                            first ? std::vector<int>{0, 1} : std::vector<int>{2, 3}};
    job.table().rank(rank).groups.push_back(group);
  }
  train(model, 0);
  job.table().finish();
  LogProbSet set = set_of({healthy(0)});
  set.missing = {1, 2, 3};
  const std::vector<LogProbSet> sets{set};
  const ArmReport arm =
      gradcheck::judge({job.table(), {}, {}, 0, 0, false, true, std::nullopt, sets});
  const Finding* finding = find_code_in(arm, 604);
  ASSERT_NE(finding, nullptr) << told(arm);
  EXPECT_THAT(finding->message, HasSubstr(": rank 1 handed over none"));
}

TEST(LogProbs, WhatWasNotWrittenIsToldInTheScope) {
  LogProbSet set = set_of({healthy(0), healthy(1)});
  set.unwritten = {{0, "the budget is spent"}};
  const ArmReport arm = judged({set});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.scope.not_checked,
              Contains("log-probs 'train': 1 of 3 not written: the budget is spent"));
}

TEST(LogProbs, ARankThatWroteNoneForbidsConsistent) {
  LogProbSet set = set_of({healthy(0)});
  set.unwritten = {{1, "mask has another shape than new"}};
  const ArmReport arm = judged({set});
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 604)) << told(arm);
}

TEST(LogProbs, ThoseThatCannotBeReadForALackOfTokensAreToldInTheScope) {
  LogProbShard few;
  few.updates = 0;
  few.offsets = {0, 2};
  few.old_values = {-1.01, -2.01};
  few.new_values = {-1.02, -2.00};
  const ArmReport arm = judged({set_of({few})});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.scope.not_checked, Contains(HasSubstr("log-probs 'train' of step 0: ")));
}

// A native arm whose gradients are in order.
ArmReport judged_native(std::vector<LogProbSet> sets) {
  for (LogProbSet& set : sets) set.source = "native ppo";
  const MadeUpRun run((Recipe()));
  return gradcheck::judge({run.table(), {}, {}, 1, 1, true, true, std::nullopt, sets});
}

LogProbShard off_by_a_bit(int rank) {
  LogProbShard shard = healthy(rank);
  for (double& value : shard.new_values) value += 2e-5;
  return shard;
}

TEST(NativeLogProbs, OneBitIsAFinding) {
  EXPECT_EQ(judged_native({set_of({healthy(0), healthy(1)})}).outcome, Outcome::consistent);
  const ArmReport arm = judged_native({set_of({healthy(0), off_by_a_bit(1)})});
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  ASSERT_THAT(arm.logp, SizeIs(1));
  EXPECT_EQ(arm.logp[0].reading.regime, Regime::same_kernels);
  EXPECT_FALSE(has_cause(arm, Cause::stale_weights));
}

TEST(NativeLogProbs, ASecondEpochIsCountedAndNoFinding) {
  std::vector<LogProbShard> late = {off_by_a_bit(0), off_by_a_bit(1)};
  for (LogProbShard& shard : late) shard.updates = 1;
  const ArmReport arm = judged_native({set_of({healthy(0), healthy(1)}), set_of(late, 1)});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.logp, SizeIs(1));
  EXPECT_THAT(arm.scope.not_checked,
              Contains("log-probs 'train': 2 of 4 with optimizer steps between old and new"));
}

TEST(NativeLogProbs, ARankWithoutAnyForbidsConsistent) {
  LogProbSet set = set_of({healthy(0)});
  set.missing = {1};
  EXPECT_EQ(judged_native({set}).outcome, Outcome::inconclusive);
}

TEST(NativeLogProbs, ThoseThatNobodyAskedForAreNotMissed) {
  const ArmReport arm = judged_native({});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.scope.not_checked, Not(Contains(HasSubstr("log-probs"))));
}

}  // namespace
}  // namespace gradcheck
