// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/kto.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/probes/native/numbers.h"

namespace gradcheck::native {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

KtoLogProbs some_log_probs() {
  return {numbers({-1, -2}), numbers({-2, -1.5}), numbers({-3, -4}), numbers({-3.5, -4.5})};
}

at::Tensor desirable() { return numbers({1, 0}).gt(0); }

TEST(Kto, LossIsTheFormulaByHand) {
  const KtoOptions options{.beta = 0.1, .desirable_weight = 2, .undesirable_weight = 3};
  const at::Tensor loss = kto_loss("kto", some_log_probs(), desirable(), numbers({0.25}), options);
  const double chosen = 2 * (1 - sigmoid(0.1 * (1 - 0.25)));
  const double rejected = 3 * (1 - sigmoid(0.1 * (0.25 + 0.5)));
  EXPECT_NEAR(loss.item<double>(), (chosen + rejected) / 2, 1e-15);
}

TEST(Kto, KlIsTheMeanOfRankMeans) {
  const auto gather = [](const at::Tensor& own) {
    return at::cat({own.reshape(1), numbers({0.1})});
  };
  EXPECT_NEAR(kto_kl(some_log_probs(), gather).item<double>(), (0.5 + 0.1) / 2, 1e-15);
}

TEST(Kto, KlIsNeverNegativeAndCarriesNoGradient) {
  KtoLogProbs log_probs = some_log_probs();
  log_probs.policy_kl = numbers({-9, -9}).requires_grad_(true);
  const at::Tensor kl = kto_kl(log_probs, [](const at::Tensor& own) { return own; });
  EXPECT_EQ(kl.item<double>(), 0);
  EXPECT_FALSE(kl.requires_grad());
}

TEST(Kto, ApoZeroUnpairedKnowsNoKl) {
  const KtoOptions options{.desirable_weight = 1, .undesirable_weight = 1};
  const at::Tensor loss =
      kto_loss("apo_zero_unpaired", some_log_probs(), desirable(), numbers({9}), options);
  EXPECT_NEAR(loss.item<double>(), (1 - sigmoid(0.1) + sigmoid(-0.05)) / 2, 1e-15);
}

TEST(Kto, RankWithOneKindOnlyGivesNoNaN) {
  const at::Tensor all = numbers({1, 1}).gt(0);
  const at::Tensor loss = kto_loss("kto", some_log_probs(), all, numbers({0}), {});
  EXPECT_TRUE(loss.isfinite().item<bool>());
}

}  // namespace
}  // namespace gradcheck::native
