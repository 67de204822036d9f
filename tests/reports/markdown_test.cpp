// SPDX-License-Identifier: Apache-2.0
#include "reports/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "golden.h"
#include "made_up_reports.h"
#include "reports/text.h"

namespace gradcheck::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string markdown(const Report& report) { return rendered("markdown", report); }

TEST(Markdown, Pass) { expect_golden("pass.md", markdown(passed_report())); }
TEST(Markdown, Fail) { expect_golden("fail.md", markdown(failed_report(310))); }
TEST(Markdown, Mixed) { expect_golden("mixed.md", markdown(mixed_report())); }
TEST(Markdown, Skipped) { expect_golden("skipped.md", markdown(skipped_report())); }
TEST(Markdown, OneRank) { expect_golden("one_rank.md", markdown(one_rank_report())); }
TEST(Markdown, WeirdNames) { expect_golden("weird.md", markdown(weird_report())); }
TEST(Markdown, NotFinite) { expect_golden("not_finite.md", markdown(not_finite_report())); }
TEST(Markdown, NothingRun) { expect_golden("nothing.md", markdown(report_of({}))); }

TEST(Markdown, NotStarted) { expect_golden("not_started.md", markdown(not_started_report())); }
TEST(Markdown, HalfKnown) { expect_golden("half_known.md", markdown(half_known_report())); }

TEST(Markdown, NamesAndEstimatesReadAsTheyAreUnlessTheyWouldBeMarkup) {
  EXPECT_THAT(
      markdown(remarks_report()),
      AllOf(HasSubstr("| ppo_actor_critic[ranks=2,dtype=bf16] |"), HasSubstr("| ~5.9e-02 |")));
  ArmReport arm = failed_arm();
  arm.name = "a](http://x) ~~b~~ _c_";
  EXPECT_THAT(markdown(report_of({scenario_of({arm})})),
              HasSubstr("| a&#93;(http://x) &#126;&#126;b&#126;&#126; &#95;c&#95; |"));
}

TEST(Markdown, AHundredThousandTensorsStayBelowTheLimit) {
  const std::string text = markdown(large_report(100'000));
  EXPECT_LT(text.size(), kMarkdownBytes);
  EXPECT_THAT(text, HasSubstr("… 99800 more tensors"));
}

TEST(Markdown, SixThousandFailingArmsStayBelowTheLimit) {
  const std::string text = markdown(crowded_report(6'000));
  EXPECT_LT(text.size(), kMarkdownBytes);
  EXPECT_THAT(text, HasSubstr(" more arms\n"));
  EXPECT_THAT(text, HasSubstr("more arms in detail"));
}

// One row must stay one line with as many cells as the head, or the table ends there.
TEST(Markdown, NamesCannotBreakTheTable) {
  for (const std::string& line : lines_of(markdown(weird_report()))) {
    if (!line.starts_with("| ") || line.starts_with("| h ")) continue;
    if (line.find("arm") != line.npos || line.starts_with("| name")) continue;
    EXPECT_EQ(line.find('<'), line.npos) << line;
    EXPECT_EQ(line.find('`'), line.npos) << line;
  }
}

}  // namespace
}  // namespace gradcheck::test
