// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/ppo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/probes/native/numbers.h"

namespace gradcheck::native {
namespace {

at::Tensor row(std::initializer_list<double> values) { return numbers(values).unsqueeze(0); }

TEST(Ppo, AdvantagesAreTheSumByHand) {
  const at::Tensor completed = row({0, 1, 1}).gt(0);
  const at::Tensor advantages =
      generalised_advantages(row({0, 0, 1}), row({9, 0.5, 0.25}), completed, 0.5);
  const double last = 1 - 0.25;
  const double before = 0 + 0.25 - 0.5 + 0.5 * last;
  EXPECT_EQ(advantages[0][2].item<double>(), last);
  EXPECT_EQ(advantages[0][1].item<double>(), before);
  EXPECT_EQ(advantages[0][0].item<double>(), 0);
}

TEST(Ppo, WhiteningCountsCompletedPositionsOnly) {
  const at::Tensor white = whiten(row({1, 3, 99}), row({1, 1, 0}).gt(0));
  EXPECT_NEAR(white[0][0].item<double>(), -1, 1e-7);
  EXPECT_NEAR(white[0][1].item<double>(), 1, 1e-7);
  EXPECT_EQ(white[0][2].item<double>(), 0);
}

TEST(Ppo, SurrogateKeepsTheWorseOfRatioAndClip) {
  const at::Tensor loss =
      clipped_surrogate(row({0.5, 0.5}), row({0, 0}), row({1, -1}), row({1, 1}).gt(0));
  EXPECT_NEAR(loss.item<double>(), (-1.2 + std::exp(0.5)) / 2, 1e-14);
}

TEST(Ppo, ValueLossKeepsTheWorseOfValueAndClip) {
  const at::Tensor loss = value_loss(row({1, 1}), row({0, 0}), row({1, 0}), row({1, 1}).gt(0));
  EXPECT_NEAR(loss.item<double>(), (0.8 * 0.8 + 1) / 2 / 2, 1e-14);
}

TEST(Ppo, EmptyMaskIsZeroAndNotNan) {
  const at::Tensor none = row({0, 0}).gt(0);
  EXPECT_EQ(masked_mean(row({1, 2}), none).item<double>(), 0);
  EXPECT_EQ(whiten(row({1, 2}), none).abs().max().item<double>(), 0);
}

TEST(Ppo, K3IsZeroForAReferenceThatIsThePolicy) {
  const at::Tensor all = row({1, 1}).gt(0);
  EXPECT_EQ(k3_to_reference(row({-1, -2}), row({-1, -2}), all).item<double>(), 0);
  const double expected = std::exp(0.5) - 0.5 - 1;
  EXPECT_NEAR(k3_to_reference(row({-1, -1}), row({-0.5, -0.5}), all).item<double>(), expected,
              1e-15);
}

}  // namespace
}  // namespace gradcheck::native
