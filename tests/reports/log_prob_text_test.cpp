// SPDX-License-Identifier: Apache-2.0
#include "reports/log_prob_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "full_report.h"
#include "reports/text.h"

namespace gradcheck::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

LogProbGroup group(double mean_abs, std::int64_t tokens = 1) {
  LogProbGroup result;
  result.mean_abs = mean_abs;
  result.tokens = tokens;
  return result;
}

std::string text_of(const LogProbReading& reading, int verbosity = 0) {
  ConsoleOptions options;
  options.width = 0;
  options.verbosity = verbosity;
  Page page(options);
  add_log_probs(page, 0, {0, "", "files", reading});
  return page.take();
}

TEST(Sparkline, HasABlockForEveryGroup) {
  EXPECT_EQ(sparkline({group(0), group(1), group(4), group(8)}), "▁▂▅█");
  EXPECT_EQ(sparkline({group(0), group(0)}), "▁▁");
  EXPECT_EQ(sparkline({}), "");
}

TEST(Sparkline, NeitherHidesWhatIsNotFiniteNorMakesUpWhatIsNotThere) {
  EXPECT_EQ(sparkline({group(NAN), group(1), group(INFINITY), group(5, 0)}), "?█? ");
}

TEST(LogProbText, SaysRegimeCountsFormulasAndWhatWasSeen) {
  const std::string text = text_of(full_reading());
  EXPECT_THAT(text, AllOf(HasSubstr("regime"), HasSubstr("same_stack (inferred"),
                          HasSubstr("masked out"), HasSubstr("k3 = mean(e^Δ − 1 − Δ)"),
                          HasSubstr("token_mult_prob_error"), HasSubstr("worst tokens"),
                          HasSubstr("the name (declared): the text"), HasSubstr("another note")));
  EXPECT_THAT(text, Not(HasSubstr("by position")));
}

TEST(LogProbText, ShowsEveryProfileWhenAskedTo) {
  EXPECT_THAT(
      text_of(full_reading(), 1),
      AllOf(HasSubstr("by position"), HasSubstr("by old log-prob"), HasSubstr("worst rows")));
}

TEST(LogProbText, OfAReadingWithoutTokensIsEmpty) { EXPECT_EQ(text_of(LogProbReading{}), ""); }

TEST(LogProbText, NamesFromOutsideCannotMoveTheCursor) {
  LogProbReading reading = full_reading();
  reading.worst_tokens.front().flags = "\x1b[2J";
  reading.regime_reason = "a\nb";
  EXPECT_THAT(text_of(reading), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("a\nb"))));
}

}  // namespace
}  // namespace gradcheck::test
