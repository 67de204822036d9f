// SPDX-License-Identifier: Apache-2.0
#include "reports/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <pugixml.hpp>
#include <set>
#include <string>

#include "golden.h"
#include "made_up_reports.h"
#include "reports/text.h"

namespace gradcheck::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string junit(const Report& report) { return rendered("junit", report); }

TEST(Junit, Pass) { expect_golden("pass.xml", junit(passed_report())); }
TEST(Junit, Mixed) { expect_golden("mixed.xml", junit(mixed_report())); }
TEST(Junit, Skipped) { expect_golden("skipped.xml", junit(skipped_report())); }
TEST(Junit, OneRank) { expect_golden("one_rank.xml", junit(one_rank_report())); }
TEST(Junit, WeirdNames) { expect_golden("weird.xml", junit(weird_report())); }
TEST(Junit, NotFinite) { expect_golden("not_finite.xml", junit(not_finite_report())); }
TEST(Junit, NothingRun) { expect_golden("nothing.xml", junit(report_of({}))); }

TEST(Junit, HalfKnown) { expect_golden("half_known.xml", junit(half_known_report())); }

TEST(Junit, MessagesStayShort) {
  ArmReport skipped = skipped_arm();
  ArmReport failed = failed_arm();
  skipped.reason = failed.reason = std::string(1000, 'x');
  pugi::xml_document document;
  const Report report =
      report_of({scenario_of({skipped, failed}), not_started_report().scenarios[0]});
  ASSERT_TRUE(document.load_string(junit(report).c_str()));
  for (const auto& found : document.select_nodes("//*[@message]")) {
    EXPECT_LE(columns_of(found.node().attribute("message").value()), kJunitMessageColumns);
  }
  EXPECT_EQ(document.select_nodes("//*[@message]").size(), 4U);
}

TEST(Junit, XmllintAcceptsEveryReport) {
  if (std::system("command -v xmllint >/dev/null") != 0) GTEST_SKIP() << "xmllint is not here";
  const std::string path = testing::TempDir() + "gradcheck_junit.xml";
  for (const Report& report : {mixed_report(), weird_report(), not_finite_report(),
                               skipped_report(), report_of({}), large_report(310)}) {
    std::ofstream(path, std::ios::binary) << junit(report);
    EXPECT_EQ(std::system(("xmllint --noout " + path).c_str()), 0);
  }
}

TEST(Junit, NamesAreUnique) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(junit(weird_report()).c_str()));
  std::set<std::pair<std::string, std::string>> names;
  std::size_t cases = 0;
  for (const auto& found : document.select_nodes("//testcase")) {
    names.emplace(found.node().attribute("classname").value(),
                  found.node().attribute("name").value());
    ++cases;
  }
  EXPECT_EQ(cases, 7U);
  EXPECT_EQ(names.size(), cases);
}

TEST(Junit, FailureErrorAndSkippedAreKeptApart) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(junit(mixed_report()).c_str()));
  EXPECT_EQ(document.select_nodes("//failure").size(), 1U);
  EXPECT_EQ(document.select_nodes("//error").size(), 2U);
  EXPECT_EQ(document.select_nodes("//skipped").size(), 1U);
  const pugi::xml_node suites = document.child("testsuites");
  EXPECT_STREQ(suites.attribute("tests").value(), "6");
  EXPECT_STREQ(suites.attribute("failures").value(), "1");
  EXPECT_STREQ(suites.attribute("errors").value(), "2");
  EXPECT_STREQ(suites.attribute("skipped").value(), "1");
}

TEST(Junit, ColoursOfOtherProgramsAreLeftOut) {
  EXPECT_THAT(junit(died_report()), Not(HasSubstr("[31m")));
}

}  // namespace
}  // namespace gradcheck::test
