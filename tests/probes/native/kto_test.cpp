// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/kto.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradcheck::native {
namespace {

at::Tensor numbers(std::initializer_list<double> values) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<double>());
  return out;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

KtoLogProbs some_log_probs() {
  return {numbers({-1, -2}), numbers({-2, -1.5}), numbers({-3, -4}), numbers({-3.5, -4.5})};
}

at::Tensor desirable() { return numbers({1, 0}).gt(0); }

TEST(Kto, LossIsTheFormulaByHand) {
  const KtoOptions options{.beta = 0.1, .desirable_weight = 2, .undesirable_weight = 3};
  const at::Tensor loss = kto_loss(some_log_probs(), desirable(), numbers({0.25}), options);
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

TEST(Kto, RankWithOneKindOnlyGivesNoNaN) {
  const at::Tensor all = numbers({1, 1}).gt(0);
  const at::Tensor loss = kto_loss(some_log_probs(), all, numbers({0}), {});
  EXPECT_TRUE(loss.isfinite().item<bool>());
}

}  // namespace
}  // namespace gradcheck::native
