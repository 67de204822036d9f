// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/healthy_log_probs.h"
#include "tests/support/misplaced_log_probs.h"
#include "verdict/logp/judge.h"

namespace gradcheck {
namespace {

std::string told(const LogProbReading& reading) {
  std::string text = reading.headline + "\n";
  for (const Finding& f : reading.findings) {
    text += fmt::format("  {} {}: {}\n", code_text(f.code), name_of(f.severity), f.message);
  }
  for (const CauseClaim& c : reading.causes) {
    text += fmt::format("  {} ({})\n", name_of(c.cause), name_of(c.confidence));
  }
  for (const LogProbSignature& s : reading.signatures) {
    text += fmt::format("  [{}] {}\n", s.name, s.text);
  }
  return text;
}

std::string test_name(const testing::TestParamInfo<toy::Case>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class Broken : public testing::TestWithParam<toy::Case> {};

TEST_P(Broken, ComesOutWithItsCauseFirst) {
  const toy::Case& broken = GetParam();
  const LogProbReading reading = judge_log_probs(broken.make(), broken.conditions);
  EXPECT_EQ(reading.outcome, broken.outcome) << told(reading);
  ASSERT_FALSE(reading.causes.empty()) << told(reading);
  EXPECT_EQ(reading.causes.front().cause, *broken.cause) << told(reading);
}

INSTANTIATE_TEST_SUITE_P(Cases, Broken, testing::ValuesIn(toy::broken_cases()), test_name);

class Healthy : public testing::TestWithParam<toy::Case> {};

TEST_P(Healthy, RaisesNothing) {
  const toy::Case& healthy = GetParam();
  const LogProbReading reading = judge_log_probs(healthy.make(), healthy.conditions);
  EXPECT_EQ(reading.outcome, Outcome::consistent) << told(reading);
  for (const Finding& finding : reading.findings) {
    EXPECT_EQ(finding.severity, Severity::note) << told(reading);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Healthy, testing::ValuesIn(toy::healthy_cases()), test_name);

// Log-probs above 0 say so too, but only as a possibility.
TEST(Logsumexp, ErrsAlikeForCertainAndUncertainTokens) {
  toy::Pass rounded;
  rounded.logsumexp = toy::as_bf16;
  toy::Recipe recipe;
  recipe.new_pass = rounded;
  LogProbShard shard = toy::made(recipe);
  toy::without_entropy(shard);
  const LogProbReading reading = judge_log_probs({&shard, 1}, {});
  const auto seen = std::find_if(reading.signatures.begin(), reading.signatures.end(),
                                 [](const LogProbSignature& s) { return s.name == "flat"; });
  ASSERT_NE(seen, reading.signatures.end()) << told(reading);
  EXPECT_EQ(reading.causes.front().confidence, Confidence::likely);
}

TEST(Recompute, InFp32IsExactlyZeroAndSaysBitwise) {
  const LogProbReading reading = judge_log_probs(toy::healthy_cases().front().make(), {});
  EXPECT_EQ(reading.statistics.max_abs, 0);
  EXPECT_TRUE(reading.bitwise);
  EXPECT_NE(reading.headline.find("bitwise"), std::string::npos);
}

}  // namespace
}  // namespace gradcheck
