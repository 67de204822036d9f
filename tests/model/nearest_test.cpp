// SPDX-License-Identifier: Apache-2.0
#include "model/nearest.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

constexpr std::string_view kNames[] = {"kto_liger_ddp", "kto_liger_single", "rank_dies"};

TEST(EditDistance, CountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ddp", "dpd"), 2u);
}

TEST(Nearest, FindsTheSlipOfAFinger) {
  EXPECT_EQ(nearest("kto_liger_dpp", kNames), "kto_liger_ddp");
  EXPECT_EQ(nearest("rank_die", kNames), "rank_dies");
}

TEST(Nearest, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(nearest("dpo", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest("x", std::span<const std::string>()), "");
}

TEST(Nearest, ReplacesAtMostHalfOfAShortWord) {
  constexpr std::string_view kShort[] = {"kto", "all"};
  EXPECT_EQ(nearest("ppo", kShort), "");
  EXPECT_EQ(nearest("al", kShort), "all");
}

TEST(Nearest, TakesTheFirstOfEqualDistances) {
  const std::vector<std::string> names = {"bat", "cat"};
  EXPECT_EQ(nearest("hat", std::span<const std::string>(names)), "bat");
}

TEST(Nearest, DoesNotCompareAWordOfAMegabyte) {
  EXPECT_EQ(nearest(std::string(1 << 20, 'k'), kNames), "");
}

TEST(DidYouMean, IsAQuestionOrNothing) {
  EXPECT_EQ(did_you_mean("rank_dyes", kNames), "; did you mean 'rank_dies'?");
  EXPECT_EQ(did_you_mean("zzz", kNames), "");
}

}  // namespace
}  // namespace gradcheck
