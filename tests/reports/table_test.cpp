// SPDX-License-Identifier: Apache-2.0
#include "reports/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Table, ColumnsAreAlignedAndEmptyOnesLeftOut) {
  const Table table{{{"name"}, {"count", Align::right}, {"unused"}, {"last"}},
                    {{"ü", "310", "", "x"}, {"longer", "7"}}};
  EXPECT_THAT(lines_of(table), ElementsAre("name    count  last",  //
                                           "ü         310  x",     //
                                           "longer      7"));
}

TEST(Table, WithoutEmptyColumnsRowsAreFull) {
  const Table table = without_empty_columns({{{"a"}, {"b"}, {"c"}}, {{"1"}, {"", "", "3"}}});
  ASSERT_EQ(table.columns.size(), 2U);
  EXPECT_EQ(table.columns[1].title, "c");
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", ""), ElementsAre("", "3")));
}

TEST(Table, WithoutRowsThereIsNoTitle) { EXPECT_THAT(lines_of(Table{{{"name"}}, {}}), IsEmpty()); }

}  // namespace
}  // namespace gradcheck
