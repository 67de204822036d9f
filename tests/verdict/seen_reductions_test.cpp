// SPDX-License-Identifier: Apache-2.0
// Jobs without a wrapper: what was seen to reduce their gradients.
#include "verdict/seen_reductions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

std::vector<std::string> all_but_last(const JobModel& model) {
  return {model.names().begin(), model.names().end() - 1};
}

void flat_all_reduce(JobModel& model, std::size_t tensors, double factor) {
  for (const int rank : {0, 1}) {
    EventRecord& flat = model.event(rank, EventType::collective);
    flat.op = "all_reduce";
    flat.reduce = "sum";
  }
  for (std::size_t t = 0; t < tensors; ++t) model.sum(t, factor);
}

TEST(SeenReductions, NothingReducesIsInconclusiveAndSaysThatNothingWasSeen) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 606));
  EXPECT_FALSE(has_code(arm, 101));
  EXPECT_TRUE(has_note(arm, "no wrapper and no collective was seen")) << told_with_notes(arm);
}

TEST(SeenReductions, ForgottenTensorIsFoundByItsSiblings) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.collective("sum", all_but_last(model), 0.5);
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.differed, 1);
  ASSERT_TRUE(has_code(arm, 202)) << told_with_notes(arm);
  EXPECT_FALSE(has_code(arm, 201));
  EXPECT_FALSE(has_code(arm, 606));
  EXPECT_EQ(find_code_in(arm, 202)->names, std::vector<std::string>{"head.weight"});
  EXPECT_EQ(arm.plan[2].source, PlanSource::siblings);
  EXPECT_EQ(arm.plan[0].source, PlanSource::collective);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("no collective was seen to reduce head.weight"));
}

TEST(SeenReductions, ForgottenTensorInAFlatReductionIsFoundByItsSiblings) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  flat_all_reduce(model, 2, 0.5);
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 202));
  EXPECT_EQ(arm.plan[0].source, PlanSource::siblings);
}

TEST(SeenReductions, SiblingsMustBeMoreThanHalf) {
  Job job;
  JobModel model(job, "Net", false, {"a", "b", "c", "d"});
  model.begin(0);
  model.backward();
  model.collective("sum", {"a", "b"}, 0.5);
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 606));
}

// An expert or an adapter of the rank's own.
TEST(SeenReductions, TensorThatStartsDifferentHasNoSiblings) {
  Job job;
  JobModel model(job, "Net", false);
  model.parameters()[2][1] = normal(JobModel::kSize, 4711);
  model.begin(0);
  model.backward();
  model.collective("sum", all_but_last(model), 0.5);
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 606));
  EXPECT_FALSE(has_code(arm, 202));
}

TEST(SeenReductions, MeanByHandPassesAndIsNotedNotDeclared) {
  Job job;
  JobModel model(job, "Net", false);
  for (std::int64_t step = 0; step < 2; ++step) {
    model.begin(step);
    model.zero_grad();
    model.backward();
    model.collective("ReduceOp.SUM", model.names(), 0.5);
    model.record_reduced();
    model.step();
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.plan[0].reduction, Reduction::unknown);
  EXPECT_TRUE(has_note(arm, "mean of the local gradients fits 6 of 6")) << told_with_notes(arm);
  EXPECT_THAT(arm.headline, HasSubstr("mean of the local gradients fits, which nobody declared"));
}

// The loss was divided by the global count already.
TEST(SeenReductions, SumByHandIsHealthyToo) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.collective("sum", model.names());
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "sum of the local gradients fits 3 of 3"));
}

TEST(SeenReductions, AverageDeclaresTheMean) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.collective("avg", model.names());  // and yet the sum arrives
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_cause(arm, Cause::sum_not_mean));
}

TEST(SeenReductions, GroupThatNobodyDescribedDeclaresNothing) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.collective("sum", {"body.weight"}, 0.5);
  for (const int rank : {0, 1}) job.table().rank(rank).events.back().group = "nobody's";
  model.record_reduced();
  model.step();
  EXPECT_EQ(job.judge().plan[0].source, PlanSource::none);
}

TEST(SeenReductions, OnlyTheLastMicroStepIsDueWithoutAWrapper) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.backward();
  model.collective("sum", model.names(), 0.5);
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

TEST(SeenReductions, LastMicroStepThatWasNotRecordedIsMissed) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.record_reduced();
  model.backward();
  model.collective("sum", model.names(), 0.5);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
}

TEST(SeenReductions, SumAfterEveryMicroStepCountsTheEarlierOnesAgain) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  for (int micro = 0; micro < 3; ++micro) {
    model.backward();
    model.collective("sum", model.names());
    model.record_reduced();
  }
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 211)) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.wrong, 3);
}

// Named by their storage, or in a flat copy that has other storage.
void clip_first(JobModel& model, bool flat) {
  model.begin(0);
  model.backward();
  model.record_reduced();  // what the agent does before a clip
  model.clip(0, 10, 1);
  model.clip(1, 20, 1);
  if (flat) {
    flat_all_reduce(model, 3, 0.5);
  } else {
    model.collective("sum", model.names(), 0.5);
  }
  model.step();
}

TEST(SeenReductions, ClippingBeforeTheReductionIsNamed) {
  for (const bool flat : {true, false}) {
    Job job;
    JobModel model(job, "Net", false);
    clip_first(model, flat);
    const ArmReport arm = job.judge();
    EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
    EXPECT_EQ(arm.totals.differed, 0) << told_with_notes(arm);
    EXPECT_TRUE(has_code(arm, 205));
    const CauseClaim* cause = find_cause(arm, Cause::clip_before_reduce, "Net");
    ASSERT_NE(cause, nullptr) << told_with_notes(arm);
    EXPECT_EQ(cause->confidence, Confidence::certain);
    EXPECT_THAT(told_with_notes(arm), HasSubstr("rank 1 clipped its own gradients by 0.05"));
  }
}

TEST(SeenReductions, ClippingAfterTheReductionIsHealthy) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.collective("sum", model.names(), 0.5);
  model.record_reduced();
  for (const int rank : {0, 1}) model.clip(rank, 10, 1);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

TEST(SeenReductions, UnscalingBeforeTheReductionIsHealthy) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.record_reduced();
  for (const int rank : {0, 1}) model.unscale(rank, 1024);
  model.collective("sum", model.names(), 0.5);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "mean of the local gradients fits 3 of 3")) << told_with_notes(arm);
}

// Under no_sync throughout, then reduced by hand: what the wrapper promises is done.
TEST(SeenReductions, WrappedModelReducedByHandIsHealthy) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward({.armed = false, .no_sync = true});
  model.collective("sum", model.names(), 0.5);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

// The wrapper's `reduced` is recorded before the hand comes to it.
TEST(SeenReductions, IgnoredTensorIsSharedWhereItIsReducedByHand) {
  for (const bool by_hand : {true, false}) {
    Job job;
    JobModel model(job, "Net");
    for (const int rank : {0, 1}) {
      job.table().rank(rank).wrappers.front().ignored = {"head.weight"};
    }
    model.begin(0);
    model.backward({.escapes = {"head.weight"}});
    if (by_hand) model.collective("sum", {"head.weight"}, 0.5);
    model.step();
    const ArmReport arm = job.judge();
    EXPECT_EQ(arm.outcome, by_hand ? Outcome::consistent : Outcome::inconclusive)
        << told_with_notes(arm);
    EXPECT_EQ(arm.plan[2].source, by_hand ? PlanSource::collective : PlanSource::none);
    EXPECT_EQ(has_cause(arm, Cause::ignored_parameter), !by_hand);
  }
}

TEST(SeenReductions, OneRankNeedsNoneAndSaysThatAgreementWasNotTested) {
  Job job(1);
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.record_reduced();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_THAT(arm.scope.not_checked, testing::Contains("agreement (one rank)"));
  EXPECT_THAT(arm.headline, HasSubstr("reduced equals local bit for bit"));
}

TEST(SeenReductions, OneRankWhoseGradientWasTouchedIsWrong) {
  Job job(1);
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward();
  model.scale(0, 0.5);
  model.record_reduced();
  model.step();
  EXPECT_EQ(job.judge().outcome, Outcome::inconsistent);
}

}  // namespace
}  // namespace gradcheck
