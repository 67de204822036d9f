// SPDX-License-Identifier: Apache-2.0
// A job's gradients between reduction and step, and the data they were made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

TEST(JobFinals, WitnessedClipAndUnscaleExplainTheFactorOfTheirTensors) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  for (const int rank : {0, 1}) {
    model.unscale(rank, 1024);
    model.clip(rank, 5, 1);
  }
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

TEST(JobFinals, ClipOfOtherTensorsExplainsNothing) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  for (const int rank : {0, 1}) {
    model.clip(rank, 5, 1);
    job.table().rank(rank).events.back().names = {"Net/body.weight"};
  }
  model.step();
  const ArmReport arm = job.judge();
  ASSERT_TRUE(has_code(arm, 204)) << told_with_notes(arm);
  EXPECT_EQ(find_code_in(arm, 204)->count, 2U);
}

TEST(JobFinals, ScalersThatPartAreNamed) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  model.unscale(0, 1024);
  model.unscale(1, 512);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_cause(arm, Cause::scaler_mismatch)) << told_with_notes(arm);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("rank 0 unscaled by 1024, rank 1 by 512"));
}

TEST(JobFinals, WarmUpOfAScalerIsANoteAndNothingButWarmUpIsInconclusive) {
  for (const bool more : {true, false}) {
    Job job;
    JobModel model(job, "Net");
    model.begin(0);
    model.backward({.local = [](int, std::size_t) -> Maybe {
      Values values = normal(JobModel::kSize, 1);
      values[0] = std::numeric_limits<double>::infinity();
      return values;
    }});
    model.skip({0, 1});
    if (more) train(model, 1);
    const ArmReport arm = job.judge();
    EXPECT_EQ(arm.outcome, more ? Outcome::consistent : Outcome::inconclusive)
        << told_with_notes(arm);
    EXPECT_TRUE(has_note(arm, "step 0 was skipped by every rank and proves nothing"));
    EXPECT_FALSE(has_code(arm, 701));
  }
}

TEST(JobFinals, StepSkippedByOneRankIsAScalerMismatch) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  edit_steps(job.table(), 1, [](EventRecord& event) { event.skipped = true; });
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 804));
  EXPECT_TRUE(has_cause(arm, Cause::scaler_mismatch));
}

TEST(JobFinals, LearningRateOfZeroIsANote) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  model.step(0);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  ASSERT_TRUE(has_code(arm, 303));
  EXPECT_EQ(find_code_in(arm, 303)->severity, Severity::note);
}

// --- data

TEST(JobData, SameBatchesAreSeenThoughGradientsDiffer) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0, {.data = "same"});
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 601));
  EXPECT_TRUE(has_cause(arm, Cause::duplicate_data));
}

TEST(JobData, SameBatchesWithoutAWrapperAreSeenToo) {
  Job job;
  JobModel model(job, "Net", false);
  model.begin(0);
  model.backward({.data = "same"});
  model.collective("sum", model.names(), 0.5);
  model.record_reduced();
  model.step();
  EXPECT_TRUE(has_code(job.judge(), 601));
}

// An evaluation on one set for all, between two steps.
TEST(JobData, SameBatchesWithoutGradientsAreHealthy) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  for (const int rank : {0, 1}) {
    EventRecord& evaluation = model.event(rank, EventType::wrapper_forward);
    evaluation.armed = false;
    evaluation.grad_mode = false;
    model.event(rank, EventType::batch).digest = "same";
  }
  model.backward();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

// --- weights

TEST(JobWeights, GradientsMadeAtOtherWeightsAreNotJudged) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  train(model, 1);
  for (const int rank : {0, 1}) {
    TensorRecord made;
    made.step = 1;
    made.stage = Stage::start;
    made.model = "Net";
    made.name = "body.weight";
    made.shape = {4};
    made.stats = measure(DType::f32, to_bytes(DType::f32, normal(4, 5 + rank)));
    made.state = TensorState::finite;
    job.table().put(rank, made, job.next());
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_NE(told_with_notes(arm).find("made at other weights"), std::string::npos);
}

}  // namespace
}  // namespace gradcheck
