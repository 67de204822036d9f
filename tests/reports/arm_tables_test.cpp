// SPDX-License-Identifier: Apache-2.0
#include "reports/arm_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "made_up_reports.h"

namespace gradcheck::test {
namespace {

using testing::Contains;
using testing::Not;

TEST(ArmTables, ATensorThatFailedNoRungButProvedNothingIsNotCalledPassed) {
  ArmReport arm = unreduced_arm();
  arm.tensors[0].rungs = {{"PRESENT", RungResult::pass},
                          {"LOCALS_DISTINCT", RungResult::inconclusive}};
  const Table table = tensors_table(arm);
  EXPECT_THAT(table.rows[0], Contains("LOCALS_DISTINCT inconclusive"));
  EXPECT_THAT(table.rows[0], Not(Contains("all passed")));
}

TEST(ArmTables, EveryRowHasACellForEveryColumn) {
  const ArmReport arm = remarks_report().scenarios[0].arms[1];
  for (const Table& table : {models_table(arm), steps_table(arm), rungs_table(arm),
                             tensors_table(arm), plan_table(arm)}) {
    EXPECT_FALSE(table.rows.empty());
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  }
}

}  // namespace
}  // namespace gradcheck::test
