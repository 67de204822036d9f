// SPDX-License-Identifier: Apache-2.0
#include "run/numbered_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::Optional;

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

TEST(NumberedNames, AreOrderedAsPeopleCount) {
  EXPECT_THAT(sorted({"r10.x", "r9.x", "r1.x", "r010.x"}),
              ElementsAre("r1.x", "r9.x", "r010.x", "r10.x"));
  EXPECT_THAT(sorted({"b", "a2", "a", "2", "10"}), ElementsAre("2", "10", "a", "a2", "b"));
  EXPECT_THAT(sorted({"r99999999999999999999999", "r100000000000000000000000"}),
              ElementsAre("r99999999999999999999999", "r100000000000000000000000"));
}

TEST(NumberedNames, AreASeriesWhereOneNumberDiffers) {
  EXPECT_THAT(series_numbers({"d1/r0.x", "d1/r1.x", "d1/r12.x"}), Optional(ElementsAre(0, 1, 12)));
  EXPECT_THAT(series_numbers({"r10", "r2"}, false), Optional(ElementsAre(10, 2)));
}

TEST(NumberedNames, AreNoneOtherwise) {
  EXPECT_EQ(series_numbers({"r0.s0", "r1.s1"}), std::nullopt);
  EXPECT_EQ(series_numbers({"r0", "q1"}), std::nullopt);
  EXPECT_EQ(series_numbers({"r1", "r01"}), std::nullopt);
  EXPECT_EQ(series_numbers({"r1", "r1"}), std::nullopt);
  EXPECT_EQ(series_numbers({"r10", "r2"}), std::nullopt);
  EXPECT_EQ(series_numbers({"r0"}), std::nullopt);
  EXPECT_EQ(series_numbers({"r0", "r99999999999999999999999"}), std::nullopt);
}

}  // namespace
}  // namespace gradcheck
