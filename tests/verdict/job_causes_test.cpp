// SPDX-License-Identifier: Apache-2.0
// Why a job's gradients are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

const Micro kBypass = {.armed = false, .bare = true};
const Micro kHeld = {.armed = false, .no_sync = true};

void edit_wrappers(Job& job, const std::function<void(WrapperRecord&)>& edit) {
  for (int rank = 0; rank < job.ranks(); ++rank) edit(job.table().rank(rank).wrappers.front());
}

TEST(JobCauses, ForwardsUnderNoGradDoNotArmABypassedBackward) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  for (const int rank : {0, 1}) {
    EventRecord& rollout = model.event(rank, EventType::wrapper_forward);
    rollout.armed = false;
    rollout.grad_mode = false;
  }
  model.backward(kBypass);
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 201)) << told_with_notes(arm);
  EXPECT_TRUE(has_cause(arm, Cause::bypass));
  EXPECT_FALSE(has_cause(arm, Cause::no_sync_window));
}

// Accelerate's no_sync surrounds micro-steps that never enter the wrapper.
TEST(JobCauses, BypassInsideAnotherNoSyncIsABypass) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  for (int micro = 0; micro < 2; ++micro) {
    model.backward(kBypass);
    for (const int rank : {0, 1}) {
      for (EventRecord& event : job.table().rank(rank).events) {
        if (event.type == EventType::backward) event.no_sync = event.micro == 0;
      }
    }
  }
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 201)) << told_with_notes(arm);
  ASSERT_TRUE(has_cause(arm, Cause::bypass)) << told_with_notes(arm);
  EXPECT_EQ(arm.causes.front().cause, Cause::bypass);
  EXPECT_THAT(arm.causes.front().evidence.front(), HasSubstr("2 backwards, 0 of them armed"));
}

TEST(JobCauses, BypassInSomeStepsOnlyIsStillABypass) {
  Job job;
  JobModel model(job, "Net");
  for (std::int64_t step = 0; step < 3; ++step) train(model, step, step == 1 ? kBypass : Micro());
  const ArmReport arm = job.judge();
  ASSERT_FALSE(arm.causes.empty());
  EXPECT_EQ(arm.causes.front().cause, Cause::bypass) << told_with_notes(arm);
  EXPECT_FALSE(has_cause(arm, Cause::part_of_step));
}

TEST(JobCauses, StepsOfABypassAreToldApartFromStepsOfTwoBackwards) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0, kBypass);
  model.begin(1);
  model.zero_grad();
  model.backward();
  model.backward(kBypass);
  model.step();
  const ArmReport arm = job.judge();
  ASSERT_FALSE(arm.causes.empty());
  EXPECT_EQ(arm.causes.front().cause, Cause::bypass) << told_with_notes(arm);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("bypass: 1 backward, 0 of them armed"));
}

TEST(JobCauses, FlagRaisedBetweenForwardAndBackwardIsANoSyncWindow) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward(kHeld);
  model.backward(kHeld);
  for (const int rank : {0, 1}) {
    for (EventRecord& event : job.table().rank(rank).events) {
      if (event.type == EventType::backward) event.no_sync = false;  // raised by then
    }
  }
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_cause(arm, Cause::no_sync_window)) << told_with_notes(arm);
  EXPECT_FALSE(has_cause(arm, Cause::bypass));
}

TEST(JobCauses, NoSyncAroundTheBackwardOnlyIsHealthy) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  for (int micro = 0; micro < 2; ++micro) model.backward();
  for (const int rank : {0, 1}) {
    for (EventRecord& event : job.table().rank(rank).events) {
      if (event.type == EventType::backward) event.no_sync = true;
    }
  }
  model.step();
  EXPECT_EQ(job.judge().outcome, Outcome::consistent);
}

TEST(JobCauses, TwoBackwardsOnOneForwardArePartOfTheStep) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  model.backward({.armed = false});
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 203)) << told_with_notes(arm);
  ASSERT_TRUE(has_cause(arm, Cause::part_of_step)) << told_with_notes(arm);
  EXPECT_FALSE(has_cause(arm, Cause::bypass));
}

TEST(JobCauses, StrayArmIsAWarning) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward({.armed = true, .bare = true});
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 212));
  EXPECT_TRUE(has_cause(arm, Cause::stray_arm));
}

// One bucket waits for a parameter that takes no part, and nothing is reduced.
TEST(JobCauses, UnusedParameterLeavesEverythingLocal) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  const auto local = [](int rank, std::size_t t) -> Maybe {
    if (t == 2) return std::nullopt;
    return normal(JobModel::kSize, 10 * t + static_cast<std::size_t>(rank));
  };
  model.backward({.reduced = false, .local = local});
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 201)) << told_with_notes(arm);
  ASSERT_FALSE(arm.causes.empty());
  EXPECT_EQ(arm.causes.front().cause, Cause::unused_parameter) << told_with_notes(arm);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("head.weight got no local gradient on any rank"));
  EXPECT_THAT(told_with_notes(arm), HasSubstr("find_unused_parameters is off"));
  EXPECT_FALSE(has_cause(arm, Cause::bypass));
}

// The hooks of a parameter that was changed after wrapping do not fire.
TEST(JobCauses, ParameterThatWasFrozenAtTheStartHasAStaleHook) {
  Job job;
  JobModel model(job, "Net");
  model.frozen_at_start = {"head.weight"};
  train(model, 0, {.escapes = {"head.weight"}});
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 202)) << told_with_notes(arm);
  const CauseClaim* cause = find_cause(arm, Cause::stale_hook, "Net");
  ASSERT_NE(cause, nullptr) << told_with_notes(arm);
  EXPECT_EQ(cause->confidence, Confidence::certain);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("head.weight required no gradient at the start"));
}

TEST(JobCauses, ParameterThatWasAddedLaterHasAStaleHook) {
  Job job;
  JobModel model(job, "Net");
  model.first_tensors = 2;
  train(model, 0);
  model.first_tensors.reset();
  train(model, 1, {.escapes = {"head.weight"}});
  train(model, 2, {.escapes = {"head.weight"}});
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 202)) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.unrecorded, 0) << told_with_notes(arm);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("head.weight was not there at the start"));
}

TEST(JobCauses, ParameterThatIsAddedLaterAndReducedIsHealthy) {
  Job job;
  JobModel model(job, "Net");
  model.first_tensors = 2;
  train(model, 0);
  model.first_tensors.reset();
  train(model, 1);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.compared, 3);
}

TEST(JobCauses, ChangeAfterWrappingThatNobodySawIsOnlyLikely) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0, {.escapes = {"head.weight"}});
  const CauseClaim* cause = nullptr;
  const ArmReport arm = job.judge();
  cause = find_cause(arm, Cause::stale_hook, "Net");
  ASSERT_NE(cause, nullptr) << told_with_notes(arm);
  EXPECT_EQ(cause->confidence, Confidence::likely);
  EXPECT_FALSE(cause->against.empty());
}

// With unused detection, what only an early micro-step used counts as unused in the last.
TEST(JobCauses, TensorUsedUnderNoSyncOnlyIsPartOfTheStep) {
  Job job;
  JobModel model(job, "Net");
  edit_wrappers(job, [](WrapperRecord& wrapper) { wrapper.find_unused = true; });
  const auto except = [](std::size_t unused) {
    return [unused](int rank, std::size_t t) -> Maybe {
      if (t == unused) return std::nullopt;
      return normal(JobModel::kSize, 10 * t + static_cast<std::size_t>(rank) + unused);
    };
  };
  model.begin(0);
  model.backward({.armed = false, .no_sync = true, .local = except(1)});
  model.backward({.escapes = {"head.weight"}, .local = except(2)});
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 202)) << told_with_notes(arm);
  EXPECT_TRUE(has_cause(arm, Cause::part_of_step)) << told_with_notes(arm);
  EXPECT_FALSE(has_cause(arm, Cause::unused_parameter)) << told_with_notes(arm);
}

TEST(JobCauses, HookThatSumsIsNamed) {
  Job job;
  JobModel model(job, "Net");
  edit_wrappers(job, [](WrapperRecord& wrapper) { wrapper.hook = "__main__.sum_hook"; });
  train(model, 0,
        {.reduce = [](const std::vector<Values>& ranks) { return ring_sum(DType::f32, ranks); }});
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_cause(arm, Cause::sum_not_mean)) << told_with_notes(arm);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("the communication hook is __main__.sum_hook"));
}

TEST(JobCauses, HookThatDoesNothingIsNotReducedThoughLossy) {
  Job job;
  JobModel model(job, "Net");
  edit_wrappers(job, [](WrapperRecord& wrapper) {
    wrapper.hook = "noop_hook";
    wrapper.reduce = "lossy";
  });
  train(model, 0, {.reduced = false});
  const ArmReport arm = job.judge();
  EXPECT_TRUE(has_code(arm, 201)) << told_with_notes(arm);
  EXPECT_THAT(told_with_notes(arm), HasSubstr("the communication hook is noop_hook"));
}

TEST(JobCauses, GradientsWithoutABackwardCameByTheGradApi) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  for (std::size_t t = 0; t < 3; ++t) {
    for (const int rank : {0, 1}) {
      model.gradients()[t][static_cast<std::size_t>(rank)] =
          rounded(DType::f32, normal(JobModel::kSize, 10 * t + static_cast<std::size_t>(rank)));
    }
  }
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.differed, 3);
  EXPECT_TRUE(has_cause(arm, Cause::grad_api)) << told_with_notes(arm);
}

TEST(JobCauses, BareForwardBeforeTheArmedOneIsNoStrayArm) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  for (const int rank : {0, 1}) {
    EventRecord& saliency = model.event(rank, EventType::inner_forward);
    saliency.grad_mode = true;
  }
  model.backward();
  model.step();
  EXPECT_FALSE(has_code(job.judge(), 212));
}

}  // namespace
}  // namespace gradcheck
