// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::ElementsAre;

TEST(Wants, WorstTensorsComeFirstAndTheListIsTheSameForAllMoments) {
  Recipe recipe;
  recipe.micros = 2;
  recipe.reduce = [](const std::vector<Values>& ranks, const At& at) {
    Reduced reduced(ranks.size(), ddp_mean(DType::f32, ranks));
    if (at.tensor == 1) reduced[1][0] += 1;
    if (at.tensor == 2) reduced[1][0] += 100;
    return reduced;
  };
  const MadeUpRun run(recipe);
  const auto wants = wanted_payloads(run.table(), 0, 1 << 20);
  ASSERT_EQ(wants.size(), 3U);
  for (const Want& want : wants) {
    EXPECT_THAT(want.names,
                ElementsAre("policy/layer.bias", "policy/layer.weight", "policy/embed"));
    EXPECT_EQ(want.budget_bytes, (256U + 300U + 40U) * 4U);
  }
  EXPECT_EQ(wants[0].stage, Stage::local);
  EXPECT_EQ(wants[1].micro, 1);
  EXPECT_EQ(wants[2].stage, Stage::reduced);
  EXPECT_EQ(wants[2].micro, 1);
}

TEST(Wants, StayWithinTheBudgetOfAllMomentsTogether) {
  const MadeUpRun run({});
  const auto wants = wanted_payloads(run.table(), 0, 2 * (256 + 40) * 4);
  ASSERT_EQ(wants.size(), 2U);
  EXPECT_THAT(wants[0].names, ElementsAre("policy/embed", "policy/layer.bias"));
  EXPECT_TRUE(wanted_payloads(run.table(), 0, 8).empty());
  EXPECT_TRUE(wanted_payloads(run.table(), 5, 1 << 20).empty());
}

}  // namespace
}  // namespace gradcheck
