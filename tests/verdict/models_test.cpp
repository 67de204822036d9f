// SPDX-License-Identifier: Apache-2.0
// Models of a job are judged apart, each by its own steps and windows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

const Micro kBypass = {.armed = false, .bare = true};

TEST(Models, BypassOfOneIsNotHiddenByTheOther) {
  Job job;
  JobModel actor(job, "Actor"), critic(job, "Critic");
  for (std::int64_t step = 0; step < 3; ++step) {
    train(actor, step);
    train(critic, step, kBypass);
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.differed, 3);
  EXPECT_EQ(arm.models[0].differed, 0);
  EXPECT_EQ(arm.models[1].differed, 3);
  EXPECT_EQ(find_cause(arm, Cause::bypass, "Actor"), nullptr);
  const CauseClaim* bypass = find_cause(arm, Cause::bypass, "Critic");
  ASSERT_NE(bypass, nullptr) << told_with_notes(arm);
  EXPECT_EQ(bypass->confidence, Confidence::certain);
  EXPECT_EQ(bypass->site, "train.py:42");
  EXPECT_THAT(told_with_notes(arm),
              HasSubstr("the loss came from the inner module: train.py:41 (forward of .module)"));
  EXPECT_THAT(arm.headline, HasSubstr("3 backwards, 0 armed wrapper forwards"));
}

TEST(Models, OneWithoutAnyRecordIsNeverConsistent) {
  Job job;
  JobModel actor(job, "Actor");
  train(actor, 0);
  for (const int rank : {0, 1}) {
    EventRecord& step = actor.event(rank, EventType::optimizer_step);
    step.model = "Critic";
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_THAT(told(arm), HasSubstr("Critic was trained, but none of its tensors was recorded"));
}

TEST(Models, EachHasMicroStepsOfItsOwn) {
  Job job;
  JobModel actor(job, "Actor"), critic(job, "Critic");
  for (std::int64_t step = 0; step < 2; ++step) {
    actor.begin(step);
    critic.begin(step);
    actor.zero_grad();
    critic.zero_grad();
    for (int micro = 0; micro < 3; ++micro) {
      const bool last = micro == 2;
      actor.backward({.armed = last, .no_sync = !last});
    }
    critic.backward();
    actor.step();
    critic.step();
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.compared, 6);
}

TEST(Models, MissingStageOfOneNamesIt) {
  Job job;
  JobModel actor(job, "Actor"), critic(job, "Critic");
  train(actor, 0);
  train(critic, 0);
  auto& marks = job.table().rank(1).marks;
  std::erase_if(marks, [](const MarkRecord& mark) {
    return mark.model == "Critic" && mark.stage == Stage::after;
  });
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  ASSERT_TRUE(has_code(arm, 604));
  EXPECT_EQ(find_code_in(arm, 604)->model, "Critic");
}

TEST(Models, DiscriminatorsPartInTheGeneratorsStepIsUnusedAndNoted) {
  Job job;
  JobModel generator(job, "Generator"), discriminator(job, "Discriminator");
  for (std::int64_t step = 0; step < 3; ++step) {
    if (step == 0) discriminator.begin(step);
    discriminator.zero_grad();
    discriminator.backward();
    discriminator.step();
    train(generator, step);
    // The generator's backward reaches the discriminator past its wrapper, in its next step.
    discriminator.begin(step + 1);
    discriminator.backward(kBypass);
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.differed, 0);
  EXPECT_TRUE(has_note(arm,
                       "3 gradients of Discriminator at micro-step 0 of step 1 were cleared "
                       "before the optimizer step"))
      << told_with_notes(arm);
}

TEST(Models, DiscriminatorThatIsNotClearedKeepsTheGeneratorsPartAndDiffers) {
  Job job;
  JobModel discriminator(job, "Discriminator");
  train(discriminator, 0);
  discriminator.begin(1);
  discriminator.zero_grad();
  discriminator.backward();
  discriminator.backward(kBypass);  // a logging backward after the right one
  discriminator.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 203));
  EXPECT_TRUE(has_cause(arm, Cause::part_of_step)) << told_with_notes(arm);
}

TEST(Models, OptimizersThatAlternateCarryNothingOver) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.zero_grad();
  model.backward();
  model.step();  // of all
  for (const int rank : {0, 1}) {
    for (EventRecord& event : job.table().rank(rank).events) {
      if (event.type == EventType::optimizer_step) event.names = {"body.weight", "body.bias"};
    }
  }
  model.gradients()[0].assign(2, std::nullopt);
  model.gradients()[1].assign(2, std::nullopt);
  model.begin(1);
  model.backward();
  model.step();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.totals.wrong, 0) << told_with_notes(arm);
  EXPECT_FALSE(has_code(arm, 210)) << told_with_notes(arm);
}

TEST(Models, BackwardAfterTheLastStepIsNotMissed) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  model.begin(1);
  model.takes_part = [](int rank) { return rank == 0; };
  model.backward({.armed = false, .no_sync = true});
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
}

TEST(Models, ModelThatOnlyOneRankStepsIsNeverConsistent) {
  Job job;
  JobModel actor(job, "Actor"), critic(job, "Critic");
  train(actor, 0);
  critic.takes_part = [](int rank) { return rank == 0; };
  train(critic, 0);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 804));
}

TEST(Models, TrainedTensorThatLosesItsRecordsIsUnrecorded) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  model.first_tensors = 2;  // the agent forgets the third from now on
  train(model, 1);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.unrecorded, 1);
}

// --- models of one rank

TEST(LoneModels, ProbeOfOneRankIsNamedAndTheOthersAreJudged) {
  Job job;
  JobModel model(job, "Net"), probe(job, "Probe", false);
  probe.takes_part = [](int rank) { return rank == 0; };
  train(model, 0);
  train(probe, 0);
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.inventory, 3U);
  EXPECT_TRUE(has_note(arm, "Probe is trained on rank 0 alone")) << told_with_notes(arm);
}

TEST(LoneModels, NothingElseIsNoPass) {
  Job job;
  JobModel probe(job, "Probe", false);
  probe.takes_part = [](int rank) { return rank == 0; };
  train(probe, 0);
  EXPECT_EQ(job.judge().outcome, Outcome::inconclusive);
}

// Each rank may know one model by a name of its own.
TEST(LoneModels, OfSeveralRanksAreNoPass) {
  Job job;
  JobModel model(job, "Net"), mine(job, "ModuleDict", false), yours(job, "Critic", false);
  mine.takes_part = [](int rank) { return rank == 0; };
  yours.takes_part = [](int rank) { return rank == 1; };
  train(model, 0);
  train(mine, 0);
  train(yours, 0);
  EXPECT_NE(job.judge().outcome, Outcome::consistent);
}

// A wrapped model that one rank alone trains waits for the others for ever, or is cut off.
TEST(LoneModels, WrappedModelOfOneRankIsNoPass) {
  Job job;
  JobModel model(job, "Net"), lone(job, "Critic");
  lone.takes_part = [](int rank) { return rank == 0; };
  train(model, 0);
  train(lone, 0);
  EXPECT_NE(job.judge().outcome, Outcome::consistent);
}

}  // namespace
}  // namespace gradcheck
