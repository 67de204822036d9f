// SPDX-License-Identifier: Apache-2.0
#include "scenario/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/errors.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;

Arm native_arm(const std::string& name, const std::string& reference = "") {
  Arm arm;
  arm.name = name;
  arm.reference = reference;
  arm.program.native = NativeProgram{};
  return arm;
}

Scenario two_arms() {
  Scenario scenario;
  scenario.name = "s";
  scenario.arms = {native_arm("unwrapped"), native_arm("redirected")};
  return scenario;
}

std::vector<std::string> arm_names(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const Arm& arm : scenario.arms) names.push_back(arm.name);
  return names;
}

TEST(Overrides, OverrideEveryArm) {
  Overrides overrides;
  overrides.ranks = 4;
  overrides.steps = 3;
  overrides.seed = 9;
  overrides.timeout_s = 5;
  overrides.dtype = "bf16";
  overrides.backend = "nccl";
  const Scenario changed = apply_overrides(two_arms(), overrides);
  EXPECT_EQ(changed.ranks, 4);
  EXPECT_EQ(changed.steps, 3);
  EXPECT_EQ(changed.seed, 9u);
  EXPECT_EQ(changed.timeout_s, 5);
  for (const Arm& arm : changed.arms) {
    EXPECT_EQ(arm.program.native->dtype, "bf16");
    EXPECT_EQ(arm.program.native->backend, "nccl");
  }
}

TEST(Overrides, NoneLeaveTheScenarioAsItIs) {
  const Scenario same = apply_overrides(two_arms(), {});
  EXPECT_EQ(same.name, "s");
  EXPECT_EQ(same.ranks, 2);
  EXPECT_EQ(same.arms[0].program.native, two_arms().arms[0].program.native);
}

TEST(Overrides, RefuseValuesOutOfRange) {
  Overrides ranks, steps, seed, timeout;
  ranks.ranks = 0;
  steps.steps = 0;
  seed.seed = (std::uint64_t{1} << 53) + 1;
  timeout.timeout_s = 0;
  for (const Overrides& bad : {ranks, steps, seed, timeout}) {
    EXPECT_THROW(apply_overrides(two_arms(), bad), UsageError);
  }
}

TEST(Overrides, SuggestTheNearestPart) {
  Overrides overrides;
  overrides.dtype = "fp23";
  try {
    apply_overrides(two_arms(), overrides);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--dtype: there is no 'fp23'; did you mean 'fp32'?");
  }
}

TEST(Overrides, DtypeIsNotSilentlyDroppedForACommand) {
  Scenario scenario = two_arms();
  scenario.arms[1].program = {std::nullopt, CommandProgram{{"python"}, {}, false, {}}};
  Overrides overrides;
  overrides.dtype = "bf16";
  EXPECT_THROW(apply_overrides(scenario, overrides), UsageError);
  overrides.dtype.reset();
  overrides.ranks = 3;
  EXPECT_NO_THROW(apply_overrides(scenario, overrides));
}

TEST(Overrides, FewerRanksThanAFaultNeedsAreRefused) {
  Scenario scenario = two_arms();
  scenario.arms[0].program.native->fault = Fault{"kill", 1, "forward", 0, ""};
  Overrides overrides;
  overrides.ranks = 1;
  EXPECT_THROW(apply_overrides(scenario, overrides), UsageError);
}

TEST(Overrides, FewerRanksThanAGroupOfThePlanNeedsAreRefused) {
  Scenario scenario = two_arms();
  scenario.plan.emplace_back().group = {0, 1};
  Overrides overrides;
  overrides.ranks = 1;
  EXPECT_THROW(apply_overrides(scenario, overrides), UsageError);
}

TEST(Overrides, AMatrixNameSaysWhatIsRun) {
  Scenario scenario = two_arms();
  scenario.name = "s[micro_steps=2,steps=4,dtype=fp32]";
  Overrides overrides;
  overrides.steps = 1;
  overrides.dtype = "bf16";
  EXPECT_EQ(apply_overrides(scenario, overrides).name, "s[micro_steps=2,steps=1,dtype=bf16]");
}

TEST(Overrides, ScenariosThatBecomeTheSameRunOnce) {
  Scenario four = two_arms(), two = two_arms();
  four.name = "s[ranks=4]";
  two.name = "s[ranks=2]";
  Overrides overrides;
  overrides.ranks = 3;
  const auto changed = apply_overrides(std::vector<Scenario>{four, two}, overrides);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].name, "s[ranks=3]");
}

TEST(SelectArms, KeepsTheScenariosOrderAndSaysThatSomeAreMissing) {
  Scenario scenario = two_arms();
  EXPECT_FALSE(select_arms(scenario, {"redirected", "unwrapped"}));
  EXPECT_THAT(arm_names(scenario), ElementsAre("unwrapped", "redirected"));
  EXPECT_TRUE(select_arms(scenario, {"redirected"}));
  EXPECT_THAT(arm_names(scenario), ElementsAre("redirected"));
}

TEST(SelectArms, NoNamesKeepAll) {
  Scenario scenario = two_arms();
  EXPECT_FALSE(select_arms(scenario, {}));
  EXPECT_EQ(scenario.arms.size(), 2u);
}

TEST(SelectArms, AnArmBringsTheOneItIsComparedWith) {
  Scenario scenario = two_arms();
  scenario.arms.push_back(native_arm("rounded", "redirected"));
  EXPECT_TRUE(select_arms(scenario, {"rounded"}));
  EXPECT_THAT(arm_names(scenario), ElementsAre("redirected", "rounded"));
}

TEST(SelectArms, AnUnknownArmIsAUsageErrorThatSuggestsTheNearest) {
  Scenario scenario = two_arms();
  try {
    select_arms(scenario, {"unwraped"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "scenario 's' has no arm 'unwraped'; did you mean 'unwrapped'?");
  }
}

}  // namespace
}  // namespace gradcheck
