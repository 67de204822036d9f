// SPDX-License-Identifier: Apache-2.0
#include "reports/text_reporter.h"

#include <gtest/gtest.h>

#include <string>

namespace gradcheck::test {
namespace {

std::string run_id(const Report& report) { return report.run.id; }

TEST(TextReporter, WritesTheWholeReportAtItsEndAndNothingBefore) {
  std::string text;
  const auto reporter = make_text_reporter(Sink::to_string(text), run_id);
  reporter->run_started({});
  reporter->scenario_finished({});
  EXPECT_EQ(text, "");
  Report report;
  report.run.id = "an id";
  reporter->run_finished(report);
  EXPECT_EQ(text, "an id");
}

}  // namespace
}  // namespace gradcheck::test
