// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

constexpr std::int64_t kTensors = 3;  // of the default recipe

Reduced everywhere(const std::vector<Values>& ranks, Values value) {
  return Reduced(ranks.size(), std::move(value));
}

TEST(Reduction, AllReduceThatDoesNothingIsNotReducedThoughArmed) {
  Recipe recipe;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    Reduced divided;
    for (const Values& values : ranks) divided.push_back(times(DType::f32, values, 0.5));
    return divided;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 201)) << told(arm);
  EXPECT_FALSE(has_cause(arm, Cause::bypass));
  EXPECT_EQ(arm.totals.differed, kTensors);
}

TEST(Reduction, SumWhereMeanIsDeclaredIsWrongThoughRanksAgree) {
  for (const bool payloads : {true, false}) {
    Recipe recipe;
    recipe.payloads = payloads;
    recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
      return everywhere(ranks, ring_sum(DType::f32, ranks));
    };
    const ArmReport arm = judged(recipe);
    EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
    EXPECT_EQ(arm.totals.differed, 0);
    EXPECT_EQ(arm.totals.wrong, kTensors);
    EXPECT_TRUE(has_code(arm, 204)) << told(arm);
    EXPECT_TRUE(has_cause(arm, Cause::sum_not_mean));
    EXPECT_EQ(arm.headline, "equal bit for bit, but is 2 × the declared mean");
  }
}

TEST(Reduction, DoubleDivisionIsFound) {
  Recipe recipe;
  recipe.ranks = 4;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    return everywhere(ranks, times(DType::f32, ddp_mean(DType::f32, ranks), 0.25));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_cause(arm, Cause::double_division)) << told(arm);
}

TEST(Reduction, LostRankIsNamed) {
  Recipe recipe;
  recipe.ranks = 4;
  recipe.reduce = [](std::vector<Values> ranks, const At&) {
    ranks[2].assign(ranks[2].size(), 0);
    return everywhere(ranks, ddp_mean(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.wrong, kTensors);
  ASSERT_TRUE(has_code(arm, 207)) << told(arm);
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{2});
  EXPECT_TRUE(has_cause(arm, Cause::lost_rank));
}

TEST(Reduction, TokenWeightingIsReweighted) {
  Recipe recipe;
  recipe.ranks = 4;
  recipe.reduce = [](std::vector<Values> ranks, const At&) {
    for (std::size_t r = 0; r < 4; ++r) {
      ranks[r] = times(DType::f32, ranks[r], 0.1 * static_cast<double>(r + 1));
    }
    return everywhere(ranks, ring_sum(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 205)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::token_weighting));
}

TEST(Reduction, SubGroupReductionShowsItsClusters) {
  Recipe recipe;
  recipe.ranks = 4;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    const Values left = ddp_mean(DType::f32, {ranks[0], ranks[1]});
    const Values right = ddp_mean(DType::f32, {ranks[2], ranks[3]});
    return Reduced{left, left, right, right};
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 206)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::sub_group));
  EXPECT_EQ(arm.tensors.front().clusters, "{0,1}{2,3}");
}

TEST(Reduction, OneCorruptedRankIsNamed) {
  Recipe recipe;
  recipe.ranks = 4;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    Reduced reduced = everywhere(ranks, ddp_mean(DType::f32, ranks));
    if (at.tensor == 1) reduced[3][7] += 1;
    return reduced;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.differed, 1);
  ASSERT_TRUE(has_code(arm, 101));
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{3});
  EXPECT_TRUE(has_cause(arm, Cause::corrupted_rank)) << told(arm);
  EXPECT_EQ(arm.tensors[1].differing_elements, 1U);
}

TEST(Reduction, OneTensorThatEscapesIsSomeNotReduced) {
  Recipe recipe;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    return at.tensor == 1 ? ranks : everywhere(ranks, ddp_mean(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.differed, 1);
  EXPECT_TRUE(has_code(arm, 202)) << told(arm);
  EXPECT_FALSE(has_code(arm, 201));
  EXPECT_FALSE(has_cause(arm, Cause::bypass));
}

TEST(Reduction, RandomWrongValueIsUnexplained) {
  Recipe recipe;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    return everywhere(ranks, rounded(DType::f32, normal(ranks[0].size(), 777 + at.tensor)));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 209)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::unexplained));
}

TEST(Reduction, RuleDeclaresASum) {
  Recipe recipe;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    return everywhere(ranks, ring_sum(DType::f32, ranks));
  };
  PlanRule rule;
  rule.reduction = Reduction::sum;
  EXPECT_EQ(judged(recipe, {rule}).outcome, Outcome::consistent);
}

TEST(Reduction, OneRankIsConsistentAndSaysWhatWasNotChecked) {
  Recipe recipe;
  recipe.ranks = 1;
  for (const std::int64_t micros : {1, 3}) {
    recipe.micros = micros;
    for (const bool wrapped : {true, false}) {
      recipe.wrapped = wrapped;
      const ArmReport arm = judged(recipe);
      EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
      EXPECT_EQ(arm.totals.compared, kTensors);
      EXPECT_EQ(arm.headline, micros == 1
                                  ? "reduced equals local bit for bit"
                                  : "reduced equals the sum of its micro-steps bit for bit");
      EXPECT_THAT(arm.scope.not_checked,
                  testing::ElementsAre("agreement (one rank)", "loss normalisation"));
    }
  }
}

TEST(Reduction, OneRankWhoseGradientWasTouchedIsWrong) {
  Recipe recipe;
  recipe.ranks = 1;
  recipe.reduce = [](std::vector<Values> ranks, const At&) {
    ranks[0][0] = std::nextafter(static_cast<float>(ranks[0][0]), 100.0F);
    return ranks;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_TRUE(has_code(arm, 209)) << told(arm);
  EXPECT_FALSE(has_code(arm, 204)) << told(arm);
}

// One rank, three micro-steps, and one unit in the last place of one element after them.
Recipe touched_after_three_micro_steps() {
  Recipe recipe;
  recipe.ranks = 1;
  recipe.micros = 3;
  recipe.reduce = [](std::vector<Values> ranks, const At& at) {
    const auto value = static_cast<float>(ranks[0][0]);
    if (at.micro == 2) ranks[0][0] = std::nextafter(value, 100.0F);
    return ranks;
  };
  return recipe;
}

TEST(Reduction, OneUlpAfterSeveralMicroStepsOfOneRankIsWrong) {
  const ArmReport arm = judged(touched_after_three_micro_steps());
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 209)) << told(arm);
  EXPECT_EQ(arm.totals.wrong, kTensors);
  EXPECT_EQ(arm.headline, "reduced is not the sum of the locals bit for bit");
}

TEST(Reduction, OneRankWithoutElementsSaysThatBitsWereNotChecked) {
  Recipe recipe = touched_after_three_micro_steps();
  recipe.payloads = false;
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(arm.headline, HasSubstr("not checked bit for bit"));
}

TEST(Reduction, OneRankThatScalesOrNarrowsIsHeldToTheBound) {
  Recipe recipe;
  recipe.ranks = 1;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    return everywhere(ranks, times(DType::f32, ranks[0], 0.3F));
  };
  recipe.edit = [](EvidenceTable& table) { table.rank(0).wrappers.front().divide = 1 / 0.3; };
  EXPECT_EQ(judged(recipe).outcome, Outcome::consistent) << told(judged(recipe));
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    return everywhere(ranks, rounded(DType::bf16, ranks[0]));
  };
  recipe.edit = [](EvidenceTable& table) { table.rank(0).wrappers.front().wire_dtype = "bf16"; };
  EXPECT_EQ(judged(recipe).outcome, Outcome::consistent) << told(judged(recipe));
}

TEST(Reduction, OneRankInEveryTypeAndWindowIsHealthy) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const std::int64_t micros : {1, 2, 8, 64}) {
      Recipe recipe;
      recipe.ranks = 1;
      recipe.dtype = dtype;
      recipe.micros = micros;
      EXPECT_EQ(judged(recipe).outcome, Outcome::consistent) << told(judged(recipe));
    }
  }
}

TEST(Reduction, TwoLostRanksAreNamedInThePlural) {
  Recipe recipe;
  recipe.ranks = 4;
  recipe.reduce = [](std::vector<Values> ranks, const At&) {
    for (const std::size_t lost : {1U, 2U}) ranks[lost].assign(ranks[lost].size(), 0);
    return everywhere(ranks, ddp_mean(DType::f32, ranks));
  };
  EXPECT_EQ(judged(recipe).headline, "equal bit for bit, but ranks 1, 2 are missing from the mean");
}

TEST(Reduction, NoSyncUntilTheLastMicroStepIsHealthy) {
  Recipe recipe;
  recipe.micros = 3;
  recipe.no_sync = [](const At& at) { return at.micro < 2; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
}

TEST(Reduction, LastMicroStepInNoSyncIsNamed) {
  for (const bool payloads : {true, false}) {
    Recipe recipe;
    recipe.micros = 3;
    recipe.payloads = payloads;
    recipe.no_sync = [](const At& at) { return at.micro == 2; };
    const ArmReport arm = judged(recipe);
    EXPECT_EQ(arm.totals.differed, kTensors);
    ASSERT_TRUE(has_code(arm, 203)) << told(arm);
    EXPECT_THAT(told(arm), HasSubstr("micro-step 2"));
    EXPECT_TRUE(has_cause(arm, Cause::no_sync_window)) << told(arm);
  }
}

TEST(Reduction, EveryMicroStepInNoSyncIsNotReduced) {
  Recipe recipe;
  recipe.micros = 2;
  recipe.no_sync = [](const At&) { return true; };
  const ArmReport arm = judged(recipe);
  EXPECT_TRUE(has_code(arm, 201)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::no_sync_window));
  EXPECT_FALSE(has_cause(arm, Cause::bypass));
}

TEST(Reduction, MicroStepDroppedOnAllRanksIsFoundThoughTheyAgree) {
  Recipe recipe;
  recipe.micros = 2;
  recipe.reduce = [last = std::vector<Values>()](const std::vector<Values>& ranks,
                                                 const At& at) mutable {
    (void)last;
    return at.micro == 0 ? everywhere(ranks, Values(ranks[0].size()))
                         : everywhere(ranks, ddp_mean(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.wrong, kTensors);
  ASSERT_TRUE(has_code(arm, 203)) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("micro-step 0"));
}

TEST(Reduction, MicroStepCountedTwiceIsFound) {
  Recipe recipe;
  recipe.micros = 2;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    const Values mean = ddp_mean(DType::f32, ranks);
    return everywhere(ranks, at.micro == 0 ? times(DType::f32, mean, 2) : mean);
  };
  EXPECT_TRUE(has_code(judged(recipe), 211));
}

TEST(Reduction, GradientCarriedOverFromAnEarlierStepIsAWarning) {
  Recipe recipe;
  recipe.steps = 2;
  recipe.clears = [](std::int64_t) { return false; };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 210)) << told(arm);
  EXPECT_TRUE(has_cause(arm, Cause::carried_over));
}

TEST(Reduction, EarlyMicroStepThatWasNotReducedIsANoteWhereTheLastRepairedIt) {
  Recipe recipe;
  recipe.micros = 2;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    return at.micro == 0 ? ranks : everywhere(ranks, ddp_mean(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  ASSERT_FALSE(arm.notes.empty());
  EXPECT_THAT(arm.notes.front(), HasSubstr("3 gradients not reduced at micro-step 0"));
}

TEST(Reduction, UndeclaredGradientsSayWhatTheyFit) {
  Recipe recipe;
  recipe.wrapped = false;
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    return everywhere(ranks, ring_sum(DType::f32, ranks));
  };
  const ArmReport arm = judged(recipe);
  ASSERT_FALSE(arm.notes.empty());
  EXPECT_THAT(arm.notes.front(), HasSubstr("0 fit the mean, 3 the sum"));
}

}  // namespace
}  // namespace gradcheck
