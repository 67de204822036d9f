// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/distillation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/probes/native/numbers.h"

namespace gradcheck::native {
namespace {

// Logits of a distribution over two classes, one position.
at::Tensor logits(double p) { return numbers({std::log(p), std::log(1 - p)}).unsqueeze(0); }

double kl(double p, double q) {
  return p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q));
}

TEST(Distillation, SoftenedKlIsTheFormulaByHand) {
  EXPECT_NEAR(softened_kl(logits(0.3), logits(0.8), 1).item<double>(), kl(0.8, 0.3), 1e-14);
  const auto soft = [](double p) { return std::sqrt(p) / (std::sqrt(p) + std::sqrt(1 - p)); };
  EXPECT_NEAR(softened_kl(logits(0.3), logits(0.8), 2).item<double>(), 4 * kl(soft(0.8), soft(0.3)),
              1e-14);
}

TEST(Distillation, GeneralisedJsdIsTheFormulaByHand) {
  const double m = 0.25 * 0.8 + 0.75 * 0.3;
  EXPECT_NEAR(generalised_jsd(logits(0.3), logits(0.8), 0.25).item<double>(),
              0.25 * kl(0.8, m) + 0.75 * kl(0.3, m), 1e-14);
}

TEST(Distillation, StudentThatIsItsTeacherIsAtDistanceZero) {
  EXPECT_NEAR(softened_kl(logits(0.4), logits(0.4), 1.5).item<double>(), 0, 1e-15);
  EXPECT_NEAR(generalised_jsd(logits(0.4), logits(0.4), 0.5).item<double>(), 0, 1e-15);
}

}  // namespace
}  // namespace gradcheck::native
