// SPDX-License-Identifier: Apache-2.0
// Right reductions never alarm, whatever the data look like; lost ranks are always found.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;

std::uint64_t seed_of(const At& at, std::uint64_t salt) {
  return salt * 1'000'003 + static_cast<std::uint64_t>(at.step * 31 + at.micro) * 4099 +
         at.tensor * 257 + static_cast<std::uint64_t>(at.rank);
}

Recipe sized(int ranks, DType dtype, std::int64_t micros) {
  Recipe recipe;
  recipe.ranks = ranks;
  recipe.dtype = dtype;
  recipe.micros = micros;
  return recipe;
}

void expect_healthy(const Recipe& recipe) {
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << recipe.ranks << " ranks, " << name_of(recipe.dtype)
                                              << ", " << recipe.micros << " micro-steps\n"
                                              << told(arm);
  EXPECT_LE(arm.totals.bound_used.value_or(9), 0.87);
}

TEST(Healthy, NoSizeTypeOrWindowAlarms) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const std::int64_t micros : {1, 3}) {
        for (const bool payloads : {true, false}) {
          Recipe recipe = sized(ranks, dtype, micros);
          recipe.payloads = payloads;
          expect_healthy(recipe);
          recipe.no_sync = [micros](const At& at) { return at.micro + 1 < micros; };
          expect_healthy(recipe);
        }
      }
    }
  }
}

TEST(Healthy, RoundingOfOneOverNNeverLooksLikeAWeight) {
  for (const int ranks : {3, 5, 6, 7}) {
    Recipe recipe = sized(ranks, DType::f32, 1);
    recipe.tensors = {{"large", 60'000}, {"middle", 4000}};
    expect_healthy(recipe);
  }
}

TEST(Healthy, RanksThatMostlyAgreeNeverAlarm) {
  for (std::uint64_t salt = 0; salt < 40; ++salt) {
    for (const double noise : {1.0, 1e-1, 1e-2, 1e-3}) {
      Recipe recipe = sized(2 + static_cast<int>(salt % 7), salt % 2 ? DType::bf16 : DType::f32, 1);
      recipe.tensors = {{"a", 300}, {"b", 300}, {"c", 300}};
      recipe.local = [=](const At& at) -> Maybe {
        const Values common = normal(300, 70 + at.tensor + salt);
        return plus(DType::f64, common, normal(300, seed_of(at, salt), noise));
      };
      expect_healthy(recipe);
    }
  }
}

TEST(Healthy, SparseAndTinyAndHeavyTailedTensorsNeverAlarm) {
  for (std::uint64_t salt = 0; salt < 60; ++salt) {
    Recipe recipe = sized(2 + static_cast<int>(salt % 4), salt % 2 ? DType::bf16 : DType::f32, 1);
    recipe.tensors = {{"embed", 2048}, {"norm.a", 8}, {"norm.b", 8}, {"bias", 1}, {"tail", 500}};
    recipe.local = [salt, tensors = recipe.tensors](const At& at) -> Maybe {
      Values values = normal(tensors[at.tensor].n, seed_of(at, salt));
      if (at.tensor == 0) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          if ((i / 64 + static_cast<std::size_t>(at.rank)) % 8 != 0) values[i] = 0;
        }
      }
      if (at.tensor == 4) {
        for (double& x : values) x = x * x * x * x * x * x * x;
      }
      return values;
    };
    expect_healthy(recipe);
  }
}

TEST(Healthy, RanksOfVeryDifferentScaleNeverAlarm) {
  for (std::uint64_t salt = 0; salt < 70; ++salt) {
    Recipe recipe = sized(4, salt % 2 ? DType::bf16 : DType::f32, 1);
    recipe.tensors = {{"a", 200}, {"b", 200}};
    recipe.local = [salt](const At& at) -> Maybe {
      return normal(200, seed_of(at, salt),
                    std::pow(10.0, -0.5 * static_cast<double>(salt % 7) * at.rank));
    };
    expect_healthy(recipe);
  }
}

TEST(Healthy, ManySeedsNeverAlarm) {
  for (std::uint64_t salt = 0; salt < 700; ++salt) {
    Recipe recipe = sized(2 + static_cast<int>(salt % 7), salt % 2 ? DType::bf16 : DType::f32, 1);
    recipe.payloads = false;
    recipe.tensors = {{"a", 64}, {"b", 32}, {"c", 128}};
    recipe.local = [salt, tensors = recipe.tensors](const At& at) -> Maybe {
      return normal(tensors[at.tensor].n, seed_of(at, salt));
    };
    expect_healthy(recipe);
  }
}

TEST(LostRank, IsFoundInBf16WhereTheBoundHasLostItsPower) {
  for (const int ranks : {8, 16, 32}) {
    for (const bool payloads : {true, false}) {
      Recipe recipe = sized(ranks, DType::bf16, 1);
      recipe.payloads = payloads;
      recipe.reduce = [](std::vector<Values> values, const At&) {
        values[1].assign(values[1].size(), 0);
        return Reduced(values.size(), ddp_mean(DType::bf16, values));
      };
      const ArmReport arm = judged(recipe);
      EXPECT_EQ(arm.outcome, Outcome::inconsistent) << ranks << told(arm);
      EXPECT_TRUE(has_code(arm, 207)) << ranks << told(arm);
      EXPECT_EQ(arm.totals.wrong, 3);
    }
  }
}

TEST(LostRank, IsInconclusiveWhereNothingCouldHaveSeenIt) {
  Recipe recipe = sized(16, DType::bf16, 1);
  recipe.payloads = false;
  recipe.tensors = {{"tiny", 8}};
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
}

TEST(LostRank, IsFoundWithEveryNumberOfMicroSteps) {
  for (const std::int64_t micros : {2, 4}) {
    Recipe recipe = sized(4, DType::f32, micros);
    recipe.no_sync = [micros](const At& at) { return at.micro + 1 < micros; };
    recipe.reduce = [](std::vector<Values> values, const At&) {
      values[3].assign(values[3].size(), 0);
      return Reduced(values.size(), ddp_mean(DType::f32, values));
    };
    EXPECT_TRUE(has_code(judged(recipe), 207)) << micros;
  }
}

}  // namespace
}  // namespace gradcheck
