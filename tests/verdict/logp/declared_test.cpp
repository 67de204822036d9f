// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/declared.h"

#include <gtest/gtest.h>

#include "tests/support/log_prob_cases.h"
#include "verdict/logp/judge.h"

namespace gradcheck {
namespace {

LogProbReading tempered(double old_at, double new_at, double declared) {
  toy::Recipe recipe;
  recipe.sampling.temperature = recipe.old_pass.temperature = old_at;
  recipe.new_pass.temperature = new_at;
  LogProbConditions conditions;
  conditions.temperature = declared;
  const std::vector<LogProbShard> shards = {toy::made(recipe)};
  return judge_log_probs(shards, conditions);
}

TEST(Declared, ATemperatureExplainsItselfOnEitherSide) {
  EXPECT_EQ(tempered(0.8, 1, 0.8).outcome, Outcome::consistent);
  EXPECT_EQ(tempered(1, 0.8, 0.8).outcome, Outcome::consistent);
  EXPECT_EQ(tempered(0.5, 1, 0.5).outcome, Outcome::consistent);
  EXPECT_EQ(tempered(1.3, 1, 1.3).outcome, Outcome::consistent);
}

TEST(Declared, ATemperatureExplainsNoOther) {
  for (const double declared : {0.95, 0.9, 1.0, 1.05}) {
    const LogProbReading reading = tempered(0.5, 1, declared);
    EXPECT_EQ(reading.outcome, Outcome::inconsistent) << declared;
    ASSERT_FALSE(reading.causes.empty()) << declared;
    EXPECT_EQ(reading.causes.front().cause, Cause::temperature) << declared;
  }
}

TEST(Declared, ATemperatureExplainsNoDifferenceOfAnotherKind) {
  toy::Recipe recipe;
  recipe.new_pass.weight_noise = 0.3;
  LogProbConditions conditions;
  conditions.temperature = 0.8;
  const std::vector<LogProbShard> shards = {toy::made(recipe)};
  EXPECT_EQ(judge_log_probs(shards, conditions).outcome, Outcome::inconsistent);
}

LogProbReading stale(double weight_noise, std::int64_t lag) {
  toy::Recipe recipe;
  recipe.new_pass.weight_noise = weight_noise;
  LogProbShard shard = toy::made(recipe);
  shard.entropy.clear();
  shard.updates = lag;
  LogProbConditions conditions;
  conditions.lag = lag;
  return judge_log_probs(std::vector{shard}, conditions);
}

TEST(Declared, ALagExplainsWhatItsUpdatesCanMake) {
  EXPECT_EQ(stale(0.05, 4).outcome, Outcome::consistent);
  EXPECT_EQ(stale(0.01, 1).outcome, Outcome::consistent);
}

TEST(Declared, ALagExplainsNoDifferenceOfAnySize) {
  const LogProbReading reading = stale(0.5, 1);
  EXPECT_EQ(reading.outcome, Outcome::inconsistent);
  EXPECT_NE(reading.band.source.find("1 update behind"), std::string::npos);
}

TEST(Declared, ALagWidensEveryNumber) {
  LogProbBand band;
  band.pass = 1;
  band.k3_pass = 1;
  EXPECT_EQ(widened_by_lag(band, std::nullopt).pass, 1);
  EXPECT_EQ(widened_by_lag(band, 0).pass, 1);
  EXPECT_GT(widened_by_lag(band, 2).pass, widened_by_lag(band, 1).pass);
  EXPECT_GT(*widened_by_lag(band, 2).k3_pass, *widened_by_lag(band, 1).k3_pass);
  band.number = "max_abs";
  EXPECT_EQ(widened_by_lag(band, 2).pass, 3);
}

}  // namespace
}  // namespace gradcheck
