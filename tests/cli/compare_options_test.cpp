// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_options.h"

#include <gtest/gtest.h>

#include "model/errors.h"

namespace gradcheck {
namespace {

CompareWords words() {
  CompareWords words;
  words.ranks = {"a", "b"};
  words.locals = {"l"};
  words.reference = "r";
  return words;
}

TEST(CompareOptions, AreExactAndAMeanUnlessSaidOtherwise) {
  const CompareOptions options = compare_options_from(words());
  EXPECT_EQ(options.tolerance.kind, ToleranceKind::exact);
  EXPECT_EQ(options.reduction, Reduction::mean);
  EXPECT_EQ(options.wire_dtype, std::nullopt);
}

TEST(CompareOptions, TakeAToleranceInTwoUnits) {
  CompareWords given = words();
  given.tolerance = "ulp=4";
  EXPECT_EQ(compare_options_from(given).tolerance.ulps, 4U);
  given.tolerance = "norm=1e-3";
  EXPECT_EQ(compare_options_from(given).tolerance.norm, 1e-3);
  EXPECT_EQ(text_of(compare_options_from(given).tolerance), "norm=0.001");
}

TEST(CompareOptions, TakeAFactor) {
  CompareWords given = words();
  given.reduction = "factor=0.25";
  EXPECT_EQ(compare_options_from(given).reduction, Reduction::factor);
  EXPECT_EQ(compare_options_from(given).factor, 0.25);
}

TEST(CompareOptions, RefuseWhatTheyDoNotKnow) {
  const auto refuses = [](auto change) {
    CompareWords given = words();
    change(given);
    EXPECT_THROW(compare_options_from(given), UsageError);
  };
  refuses([](CompareWords& w) { w.ranks.clear(); });
  refuses([](CompareWords& w) { w.tolerance = "ulp=4x"; });
  refuses([](CompareWords& w) { w.tolerance = "norm=inf"; });
  refuses([](CompareWords& w) { w.reduction = "unknown"; });
  refuses([](CompareWords& w) { w.wire_dtype = "f8"; });
  refuses([](CompareWords& w) { w.locals.clear(), w.wire_dtype = "bf16"; });
}

}  // namespace
}  // namespace gradcheck
