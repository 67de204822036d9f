// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/dtype.h"
#include "model/finding.h"
#include "model/log_probs.h"
#include "model/native_parts.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "model/record.h"

namespace gradcheck {
namespace {

// Every value 0 … last has a name of its own that reads back to it, and no other name does.
template <typename Enum, typename FromName>
void expect_round_trip(Enum last, FromName from_name) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<Enum>(i);
    const std::string name(name_of(value));
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name << " names two values";
    EXPECT_EQ(from_name(name), value) << name;
  }
  EXPECT_EQ(from_name(""), std::nullopt);
  EXPECT_EQ(from_name("no_such_name"), std::nullopt);
}

TEST(Names, OfEvidenceRoundTrip) {
  expect_round_trip(Stage::next_forward, stage_from_name);
  expect_round_trip(TensorKind::buffer, kind_from_name);
  expect_round_trip(TensorState::unreadable, state_from_name);
  expect_round_trip(EventType::note, event_from_name);
  expect_round_trip(DType::other, dtype_from_name);
}

TEST(Names, OfVerdictsRoundTrip) {
  expect_round_trip(Outcome::skipped, outcome_from_name);
  expect_round_trip(Verdict::skip, verdict_from_name);
  expect_round_trip(RungResult::not_applicable, rung_result_from_name);
  expect_round_trip(Severity::error, severity_from_name);
  expect_round_trip(Confidence::certain, confidence_from_name);
  expect_round_trip(Cause::unexplained, cause_from_name);
}

TEST(Names, OfLogProbsRoundTrip) {
  expect_round_trip(Regime::quantised, regime_from_name);
  expect_round_trip(BandLevel::fail, band_level_from_name);
}

TEST(Names, OfPlansRoundTrip) {
  expect_round_trip(Role::undeclared, role_from_name);
  expect_round_trip(Reduction::unknown, reduction_from_name);
  expect_round_trip(BufferPolicy::undeclared, buffer_policy_from_name);
  EXPECT_EQ(name_of(PlanSource::none), "none");
}

TEST(Names, OfNativePartsAreUniqueAndExplained) {
  using Parts = std::span<const NativePart>;
  for (Parts parts :
       {native_models(), native_trainers(), native_losses(), native_objectives(), native_labels(),
        native_rewards(), native_idle_expert(), native_wrappers(), native_paths(), native_guards(),
        native_backends(), native_dtypes(), native_data(), native_no_sync(), native_hooks(),
        fault_kinds(), fault_phases()}) {
    std::set<std::string_view> names;
    for (const NativePart& part : parts) {
      EXPECT_TRUE(names.insert(part.name).second) << part.name;
      EXPECT_FALSE(part.summary.empty()) << part.name;
      EXPECT_TRUE(contains(parts, part.name));
    }
    EXPECT_FALSE(contains(parts, ""));
  }
}

TEST(Names, OfFaultKindsSayWhatAFaultMustName) {
  EXPECT_EQ(needs_of_fault("raise"), FaultNeeds::phase);
  EXPECT_EQ(needs_of_fault("skip_hook"), FaultNeeds::tensor);
  EXPECT_EQ(needs_of_fault("skip_mark"), FaultNeeds::stage);
  EXPECT_EQ(needs_of_fault("skip_reduction"), FaultNeeds::nothing);
  EXPECT_EQ(needs_of_fault("no such kind"), FaultNeeds::nothing);
}

TEST(Verdict, OfAScenarioIsTheWorstInTheOrderFailErrorPassSkip) {
  EXPECT_EQ(worse(Verdict::error, Verdict::fail), Verdict::fail);
  EXPECT_EQ(worse(Verdict::pass, Verdict::error), Verdict::error);
  EXPECT_EQ(worse(Verdict::skip, Verdict::pass), Verdict::pass);
  EXPECT_EQ(worse(Verdict::skip, Verdict::skip), Verdict::skip);
}

}  // namespace
}  // namespace gradcheck
