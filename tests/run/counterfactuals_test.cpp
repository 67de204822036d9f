// SPDX-License-Identifier: Apache-2.0
#include "run/counterfactuals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Arm arm_named(const std::string& name, const std::string& reference = "") {
  Arm arm;
  arm.name = name;
  arm.reference = reference;
  return arm;
}

ArmReport reading_of(const std::string& name, double max_abs, double mean_abs) {
  ArmReport arm;
  arm.name = name;
  arm.headline = "equal";
  LogProbArm judged;
  judged.name = "policy";
  judged.reading.statistics.max_abs = max_abs;
  judged.reading.statistics.mean_abs = mean_abs;
  arm.logp.push_back(judged);
  return arm;
}

// One broken arm and one with something changed.
ScenarioReport told(ArmReport broken, ArmReport changed) {
  Scenario scenario;
  scenario.arms = {arm_named("broken"), arm_named("changed", "broken")};
  ScenarioReport report;
  report.arms = {std::move(broken), std::move(changed)};
  tell_counterfactuals(scenario, report);
  return report;
}

std::vector<std::string> notes_after(double max_abs, double mean_abs) {
  return told(reading_of("broken", 0.03, 0.008), reading_of("changed", max_abs, mean_abs))
      .arms.front()
      .notes;
}

TEST(Counterfactuals, BothArmsSayHowFarTheDifferenceFalls) {
  const ScenarioReport report =
      told(reading_of("broken", 0.03, 0.008), reading_of("changed", 0, 0));
  EXPECT_THAT(report.arms[0].notes,
              ElementsAre("changed: max |Δ| 0.03 → 0, mean |Δ| 0.008 → 0: explains all of it"));
  EXPECT_EQ(report.arms[1].headline, "equal; max |Δ| 0.03 → 0 against broken");
}

TEST(Counterfactuals, WhatChangesLittleOrNothingIsSaidToo) {
  EXPECT_THAT(notes_after(0.03, 0.008),
              ElementsAre("changed: max |Δ| 0.03 → 0.03, mean |Δ| 0.008 → 0.008: changes nothing"));
  EXPECT_THAT(notes_after(0.02, 0.004),
              ElementsAre("changed: max |Δ| 0.03 → 0.02, mean |Δ| 0.008 → 0.004: explains 50 %"));
  EXPECT_THAT(
      notes_after(0.5, 0.1),
      ElementsAre("changed: max |Δ| 0.03 → 0.5, mean |Δ| 0.008 → 0.1: does not explain it"));
}

TEST(Counterfactuals, AllIsClaimedOnlyWhereNothingIsLeft) {
  EXPECT_THAT(notes_after(1e-9, 1e-9),
              ElementsAre("changed: max |Δ| 0.03 → 1e-09, mean |Δ| 0.008 → 1e-09: explains 99 %"));
}

TEST(Counterfactuals, NothingIsSaidOfArmsWithoutReadings) {
  ArmReport silent;
  silent.name = "changed";
  const ScenarioReport report = told(reading_of("broken", 0.03, 0.008), silent);
  EXPECT_THAT(report.arms[0].notes, IsEmpty());
  EXPECT_EQ(report.arms[1].headline, "");
}

TEST(Counterfactuals, AnArmThatDidNotRunIsNoArm) {
  Scenario scenario;
  scenario.arms = {arm_named("changed", "broken")};
  ScenarioReport report;
  report.arms = {reading_of("changed", 0, 0)};
  tell_counterfactuals(scenario, report);
  EXPECT_EQ(report.arms[0].headline, "equal");
}

}  // namespace
}  // namespace gradcheck
