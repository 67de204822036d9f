// SPDX-License-Identifier: Apache-2.0
#include "reports/json.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "made_up_reports.h"
#include "model/json/report.h"

namespace gradcheck::test {
namespace {

// tests/test_report_schema.py holds these files against the schema.
TEST(Json, Pass) { expect_golden("pass.json", rendered("json", passed_report())); }
TEST(Json, Died) { expect_golden("died.json", rendered("json", died_report())); }
TEST(Json, Skipped) { expect_golden("skipped.json", rendered("json", skipped_report())); }
TEST(Json, OneRank) { expect_golden("one_rank.json", rendered("json", one_rank_report())); }
TEST(Json, WeirdNames) { expect_golden("weird.json", rendered("json", weird_report())); }
TEST(Json, NotFinite) { expect_golden("not_finite.json", rendered("json", not_finite_report())); }
TEST(Json, HalfKnown) { expect_golden("half_known.json", rendered("json", half_known_report())); }
TEST(Json, NothingRun) { expect_golden("nothing.json", rendered("json", report_of({}))); }

TEST(Json, IsTheReportAndANewline) {
  const Report report = mixed_report();
  EXPECT_EQ(rendered("json", report), report_to_json(report) + "\n");
}

}  // namespace
}  // namespace gradcheck::test
