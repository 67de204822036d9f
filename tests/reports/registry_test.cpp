// SPDX-License-Identifier: Apache-2.0
#include "reports/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "made_up_reports.h"

namespace gradcheck::test {
namespace {

TEST(Registry, NamesAndExtensionsAreUniqueAndFound) {
  std::set<std::string_view> names, extensions;
  for (const ReporterInfo& info : all_reporters()) {
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_TRUE(extensions.insert(info.extension).second);
    EXPECT_EQ(find_reporter(info.name), &info);
    EXPECT_FALSE(info.summary.empty());
  }
  EXPECT_EQ(find_reporter("xml"), nullptr);
  EXPECT_EQ(reporter_names(), "console, json, junit, markdown");
}

// Whatever a report lacks, every reporter says something and none crashes.
TEST(Registry, EveryReporterBearsEmptyReports) {
  const Report one_empty_arm = report_of({scenario_of({ArmReport{}}, "")});
  for (const ReporterInfo& info : all_reporters()) {
    EXPECT_FALSE(rendered(info.name, Report{}).empty());
    EXPECT_FALSE(rendered(info.name, report_of({ScenarioReport{}})).empty());
    EXPECT_FALSE(rendered(info.name, one_empty_arm).empty());
  }
}

TEST(Registry, SameReportSameBytes) {
  for (const ReporterInfo& info : all_reporters()) {
    EXPECT_EQ(rendered(info.name, mixed_report()), rendered(info.name, mixed_report()));
  }
}

}  // namespace
}  // namespace gradcheck::test
