// SPDX-License-Identifier: Apache-2.0
#include "model/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace gradcheck {
namespace {

TEST(GlobMatch, StarIsAnyRunAndQuestionMarkOneCharacter) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("kto_*", "kto_liger_ddp"));
  EXPECT_TRUE(glob_match("*_ddp", "kto_liger_ddp"));
  EXPECT_TRUE(glob_match("k*l?ger*p", "kto_liger_ddp"));
  EXPECT_TRUE(glob_match("**", "anything"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match("kto", "kto_liger"));
  EXPECT_FALSE(glob_match("", "kto"));
  EXPECT_TRUE(glob_match("", ""));
}

TEST(GlobMatch, GoesBackToTheLastStar) {
  EXPECT_TRUE(glob_match("*aab", "aaaab"));
  EXPECT_TRUE(glob_match("a*b*c", "a_bb_bc_c"));
  EXPECT_FALSE(glob_match("a*b*c", "a_bb_bc_d"));
}

TEST(GlobMatch, TakesBracketsOfMatrixNamesLiterally) {
  EXPECT_TRUE(glob_match("kto[ranks=4]", "kto[ranks=4]"));
  EXPECT_TRUE(glob_match("*ranks=4*", "kto[ranks=4,dtype=bf16]"));
  EXPECT_FALSE(glob_match("kto[ranks=4]", "ktor"));
}

TEST(GlobMatch, ManyStarsDoNotExplode) {
  const std::string text(5000, 'a');
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_TRUE(glob_match(pattern, text));
  EXPECT_FALSE(glob_match(pattern + "b", text));
}

TEST(FilterMatch, TakesPositiveGlobsWithoutTheNegativeOnes) {
  EXPECT_TRUE(filter_match("kto_*-*_single", "kto_liger_ddp"));
  EXPECT_FALSE(filter_match("kto_*-*_single", "kto_liger_single"));
  EXPECT_FALSE(filter_match("kto_*-*_single", "rank_dies"));
}

TEST(FilterMatch, OnlyNegativeGlobsTakeTheRest) {
  EXPECT_TRUE(filter_match("-rank_*", "kto_liger_ddp"));
  EXPECT_FALSE(filter_match("-rank_*", "rank_dies"));
}

TEST(FilterMatch, ColonsSeparateGlobs) {
  EXPECT_TRUE(filter_match("kto_*:rank_*-*_dies:*_ddp", "rank_hangs"));
  EXPECT_FALSE(filter_match("kto_*:rank_*-*_dies:*_ddp", "kto_liger_ddp"));
  EXPECT_FALSE(filter_match("kto_*:rank_*-*_dies:*_ddp", "rank_dies"));
}

}  // namespace
}  // namespace gradcheck
