// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/grpo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "model/native_parts.h"
#include "tests/probes/native/numbers.h"

namespace gradcheck::native {
namespace {

// Two rows of two positions; the second row has one token. Ratios e^0.5, e^-0.5 and e^1.
GrpoBatch batch() {
  GrpoBatch out;
  out.policy = numbers({-1, -2, -1, -7}).view({2, 2});
  out.old = numbers({-1.5, -1.5, -2, -7}).view({2, 2});
  out.reference = numbers({-1.2, -1.8, -1, -7}).view({2, 2});
  out.completed = numbers({1, 1, 1, 0}).view({2, 2}).gt(0);
  out.advantages = numbers({2, -1});
  out.token_share = numbers({4});
  out.longest = 2;
  return out;
}

double loss_of(const std::string& name, double beta = 0) {
  return grpo_loss({{name, 1}, {"k3", beta}}, batch()).item<double>();
}

// Clipped ratio times advantage: 1.2 · 2, e^-0.5 · 2, e · −1 (the worse one is kept).
const double kFirst = -2.4;
const double kSecond = -2 * std::exp(-0.5);
const double kThird = std::exp(1.0);

TEST(Grpo, NormalisersAreTheFormulasByHand) {
  const double sum = kFirst + kSecond + kThird;
  EXPECT_NEAR(loss_of("dapo"), sum / 4, 1e-14);
  EXPECT_NEAR(loss_of("bnpo"), sum / 3, 1e-14);
  EXPECT_NEAR(loss_of("dr_grpo"), sum / (2 * 2), 1e-14);
  EXPECT_NEAR(loss_of("grpo"), ((kFirst + kSecond) / 2 + kThird) / 2, 1e-14);
}

TEST(Grpo, CispoWeighsLogProbsByBoundedRatios) {
  const double sum = -std::exp(0.5) * 2 * -1 - std::exp(-0.5) * 2 * -2 + std::exp(1.0) * -1;
  EXPECT_NEAR(loss_of("cispo"), sum / 4, 1e-14);
}

TEST(Grpo, SapoGatesBySign) {
  const auto gate = [](double ratio, double tau) {
    return 4 / tau / (1 + std::exp(-tau * (ratio - 1)));
  };
  const double first = -2 * (gate(std::exp(0.5), 1) + gate(std::exp(-0.5), 1)) / 2;
  EXPECT_NEAR(loss_of("sapo"), (first + gate(std::exp(1.0), 1.05)) / 2, 1e-13);
}

TEST(Grpo, VespoWeighsWholeSequences) {
  const double up = std::exp(3 + 2 * 0.0 - 3 * 1);              // log w = 0.5 − 0.5
  const double down = std::exp(2 + 3 * 1.0 - 2 * std::exp(1));  // log w = 1
  EXPECT_NEAR(loss_of("vespo"), (up * 2 * 3 - down * 1) / 4, 1e-13);
}

TEST(Grpo, LuspoMultipliesSequencesByTheirLength) {
  const double first = -2.0;  // mean log ratio 0
  EXPECT_NEAR(loss_of("luspo"), (first * 2 + std::exp(1.0) * 1) / 2, 1e-13);
}

TEST(Grpo, K3IsAddedToEachToken) {
  const auto k3 = [](double d) { return std::exp(d) - d - 1; };
  const double expected = loss_of("bnpo") + 0.1 * (k3(-0.2) + k3(0.2) + k3(0)) / 3;
  EXPECT_NEAR(loss_of("bnpo", 0.1), expected, 1e-14);
}

TEST(Grpo, GroupWithOneRewardHasNoAdvantage) {
  const at::Tensor advantages = group_advantages(numbers({3, 3, 1, 2}), 2);
  EXPECT_EQ(advantages[0].item<double>(), 0);
  const double expected = 0.5 / (std::sqrt(0.5) + 1e-4);
  EXPECT_NEAR(advantages[3].item<double>(), expected, 1e-14);
  EXPECT_NEAR(advantages[2].item<double>(), -expected, 1e-14);
}

TEST(Grpo, EveryObjectiveOfTheTableHasALoss) {
  for (const NativePart& part : native_objectives()) {
    if (part.trainer != "grpo") continue;
    EXPECT_TRUE(std::isfinite(loss_of(std::string(part.name)))) << part.name;
  }
  EXPECT_THROW(loss_of("sigmoid"), std::invalid_argument);
}

}  // namespace
}  // namespace gradcheck::native
