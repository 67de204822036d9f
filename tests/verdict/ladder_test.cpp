// SPDX-License-Identifier: Apache-2.0
#include "verdict/ladder.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;

// Rank 0 holds an infinity and is exact elsewhere; the others are right and round a little.
Recipe one_cluster_overflows() {
  Recipe recipe;
  recipe.ranks = 3;
  recipe.tensors = {{"a", 2}};
  recipe.local = [](const At& at) -> Maybe {
    return Values{normal(1, static_cast<std::uint64_t>(at.rank))[0], 0};
  };
  recipe.reduce = [](const std::vector<Values>& ranks, const At&) {
    Reduced reduced(ranks.size(), ddp_mean(DType::f32, ranks));
    reduced[0][0] = std::numeric_limits<double>::infinity();
    return reduced;
  };
  return recipe;
}

TEST(Ladder, FailedClusterIsNotHiddenByOneThatPassesLater) {
  const ArmReport arm = judged(one_cluster_overflows());
  ASSERT_EQ(arm.tensors.size(), 1U);
  const auto& [rung, result] = arm.tensors.front().rungs[5];
  EXPECT_EQ(rung, "REDUCTION_RIGHT");
  EXPECT_EQ(result, RungResult::fail) << told(arm);
}

TEST(Summary, LargestDistanceIsUnknownAsSoonAsOneIs) {
  Recipe recipe;
  recipe.armed = [](const At&) { return false; };
  recipe.tensors = {{"a", 40}, {"b", 40}};
  recipe.local = [](const At& at) -> Maybe {
    if (at.tensor == 1 && at.rank == 1) return std::nullopt;
    return normal(40, static_cast<std::uint64_t>(at.rank) * 10 + at.tensor);
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.totals.differed, 2);
  EXPECT_FALSE(arm.totals.max_abs.has_value());
}

}  // namespace
}  // namespace gradcheck
