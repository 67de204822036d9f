// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/dpo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "model/native_parts.h"
#include "tests/probes/native/numbers.h"

namespace gradcheck::native {
namespace {

constexpr double kBeta = 0.1;
constexpr double kSmoothing = 0.2;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double log_sigmoid(double x) { return std::log(sigmoid(x)); }

// Two pairs with chosen ratios 1 and -2, rejected ratios -0.5 and 1: margins 1.5 and -3.
PairLogProbs pairs() {
  return {numbers({-1, -8}), numbers({-4, -2}), numbers({-2, -6}), numbers({-3.5, -3}),
          numbers({4, 5}),   numbers({5, 8}),   numbers({0.03})};
}

double loss_of(const std::string& name, double smoothing = 0) {
  DpoOptions options{.beta = kBeta, .label_smoothing = smoothing};
  return dpo_loss({{name, 1}}, pairs(), options).item<double>();
}

// Mean of a function of each pair's chosen and rejected ratio.
template <typename F>
double mean_over_pairs(F f) {
  return (f(1.0, -0.5) + f(-2.0, 1.0)) / 2;
}

TEST(Dpo, SigmoidIsTheFormulaByHand) {
  const auto smoothed = [](double e) {
    return mean_over_pairs([e](double c, double r) {
      const double z = kBeta * (c - r);
      return -(1 - e) * log_sigmoid(z) - e * log_sigmoid(-z);
    });
  };
  EXPECT_NEAR(loss_of("sigmoid"), smoothed(0), 1e-15);
  EXPECT_NEAR(loss_of("sigmoid", kSmoothing), smoothed(kSmoothing), 1e-15);
}

TEST(Dpo, HingeIsTheFormulaByHand) {
  const auto hinge = [](double c, double r) { return std::max(0.0, 1 - kBeta * (c - r)); };
  EXPECT_NEAR(loss_of("hinge"), mean_over_pairs(hinge), 1e-15);
}

TEST(Dpo, IpoAveragesOverTokens) {
  const double first = 1.0 / 4 + 0.5 / 5 - 5;
  const double second = -2.0 / 5 - 1.0 / 8 - 5;
  EXPECT_NEAR(loss_of("ipo"), (first * first + second * second) / 2, 1e-13);
}

TEST(Dpo, RobustIsTheFormulaByHand) {
  const auto robust = [](double c, double r) {
    const double z = kBeta * (c - r);
    const double kept = (1 - kSmoothing) * log_sigmoid(z);
    return (kSmoothing * log_sigmoid(-z) - kept) / (1 - 2 * kSmoothing);
  };
  EXPECT_NEAR(loss_of("robust", kSmoothing), mean_over_pairs(robust), 1e-14);
}

TEST(Dpo, ExoPairIsTheFormulaByHandAndFiniteWithoutSmoothing) {
  const auto exo = [](double e) {
    return mean_over_pairs([e](double c, double r) {
      const double z = kBeta * (c - r);
      return sigmoid(z) * (log_sigmoid(z) - std::log(1 - e)) +
             sigmoid(-z) * (log_sigmoid(-z) - std::log(e));
    });
  };
  EXPECT_NEAR(loss_of("exo_pair"), exo(1e-3), 1e-13);
  EXPECT_NEAR(loss_of("exo_pair", kSmoothing), exo(kSmoothing), 1e-13);
}

TEST(Dpo, NcaPairIsTheFormulaByHand) {
  const auto nca = [](double c, double r) {
    return -log_sigmoid(kBeta * c) - 0.5 * log_sigmoid(-kBeta * c) - 0.5 * log_sigmoid(-kBeta * r);
  };
  EXPECT_NEAR(loss_of("nca_pair"), mean_over_pairs(nca), 1e-15);
}

TEST(Dpo, BcoPairIsTheFormulaByHand) {
  const auto bco = [](double c, double r) {
    return -log_sigmoid(kBeta * c - 0.03) - log_sigmoid(-(kBeta * r - 0.03));
  };
  EXPECT_NEAR(loss_of("bco_pair"), mean_over_pairs(bco), 1e-15);
}

TEST(Dpo, SppoHardIsTheFormulaByHand) {
  const auto sppo = [](double c, double r) { return std::pow(c - 5, 2) + std::pow(r + 5, 2); };
  EXPECT_NEAR(loss_of("sppo_hard"), mean_over_pairs(sppo), 1e-13);
}

TEST(Dpo, AotComparesSortedQuantiles) {
  // policy ratios 3 and -6, reference ratios 1.5 and -3
  const double paired = -(log_sigmoid(kBeta * (-6 + 3)) + log_sigmoid(kBeta * (3 - 1.5))) / 2;
  EXPECT_NEAR(loss_of("aot"), paired, 1e-15);
  // chosen -2 and 1, rejected -0.5 and 1
  const double unpaired = -(log_sigmoid(kBeta * (-2 + 0.5)) + log_sigmoid(0)) / 2;
  EXPECT_NEAR(loss_of("aot_unpaired"), unpaired, 1e-15);
}

TEST(Dpo, ApoIsTheFormulaByHand) {
  const auto zero = [](double c, double r) { return 1 - sigmoid(kBeta * c) + sigmoid(kBeta * r); };
  const auto down = [](double c, double r) {
    return sigmoid(kBeta * c) + 1 - sigmoid(kBeta * (c - r));
  };
  EXPECT_NEAR(loss_of("apo_zero"), mean_over_pairs(zero), 1e-15);
  EXPECT_NEAR(loss_of("apo_down"), mean_over_pairs(down), 1e-15);
}

TEST(Dpo, DiscopopIsTheFormulaByHand) {
  const auto discopop = [](double c, double r) {
    const double z = kBeta * (c - r);
    const double share = sigmoid(z / 0.05);
    return -log_sigmoid(z) * (1 - share) + std::exp(-z) * share;
  };
  EXPECT_NEAR(loss_of("discopop"), mean_over_pairs(discopop), 1e-14);
}

TEST(Dpo, SftIsTheMeanOverChosenTokens) { EXPECT_NEAR(loss_of("sft"), 1.0, 1e-15); }

TEST(Dpo, SigmoidNormAveragesOverTokens) {
  const double first = log_sigmoid(kBeta * (1.0 / 4 + 0.5 / 5));
  const double second = log_sigmoid(kBeta * (-2.0 / 5 - 1.0 / 8));
  EXPECT_NEAR(loss_of("sigmoid_norm"), -(first + second) / 2, 1e-15);
}

TEST(Dpo, MixtureIsTheWeightedSum) {
  const at::Tensor mixed = dpo_loss({{"sigmoid", 0.8}, {"bco_pair", 0.2}, {"sft", 1}}, pairs(), {});
  const double expected = 0.8 * loss_of("sigmoid") + 0.2 * loss_of("bco_pair") + loss_of("sft");
  EXPECT_NEAR(mixed.item<double>(), expected, 1e-15);
}

TEST(Dpo, PolicyThatIsItsReferenceHasLossLn2) {
  PairLogProbs same = pairs();
  same.policy_chosen = same.reference_chosen;
  same.policy_rejected = same.reference_rejected;
  EXPECT_EQ(dpo_loss({{"sigmoid", 1}}, same, {}).item<double>(), std::log(2.0));
}

TEST(Dpo, EveryObjectiveOfTheTableHasALoss) {
  for (const NativePart& part : native_objectives()) {
    if (part.trainer != "dpo") continue;
    EXPECT_TRUE(std::isfinite(loss_of(std::string(part.name)))) << part.name;
  }
  EXPECT_THROW(loss_of("kto"), std::invalid_argument);
}

}  // namespace
}  // namespace gradcheck::native
