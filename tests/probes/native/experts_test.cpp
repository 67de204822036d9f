// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/experts.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <string>

#include "probes/native/models/model_table.h"
#include "tests/probes/native/numbers.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

class Experts : public OneThread {};

at::Tensor at_tokens(std::initializer_list<double> values) { return numbers(values).to(at::kLong); }

TEST_F(Experts, AreBalancedAtOneAndWorstAtTheirNumber) {
  const at::Tensor even = at::full({4, 2}, 0.5, at::kDouble);
  EXPECT_DOUBLE_EQ(balance_of(even, at_tokens({0, 1, 0, 1})).item<double>(), 1);
  const at::Tensor all_to_first = numbers({1, 0}).expand({4, 2});
  EXPECT_DOUBLE_EQ(balance_of(all_to_first, at_tokens({0, 0, 0, 0})).item<double>(), 2);
}

// Three tokens, two of which choose expert 0: 2 · (⅔ · 0.6 + ⅓ · 0.4).
TEST_F(Experts, HaveTheBalanceOfTheFormula) {
  const at::Tensor scores = numbers({0.9, 0.1, 0.7, 0.3, 0.2, 0.8}).view({3, 2});
  EXPECT_NEAR(balance_of(scores, at_tokens({0, 0, 1})).item<double>(),
              2 * (2.0 / 3 * 0.6 + 1.0 / 3 * 0.4), 1e-12);
}

struct Router {
  at::Generator generator = at::detail::createCPUGenerator(3);
  at::Tensor x = at::randn({10, 3}, generator, at::kDouble);
  at::Tensor weight = at::randn({4, 3}, generator, at::kDouble);

  at::Tensor balance(const at::Tensor& of) const {
    const at::Tensor scores = at::linear(x, of).softmax(-1);
    return balance_of(scores, scores.argmax(-1));
  }
};

TEST_F(Experts, HaveABalanceWhoseGradientIsThatOfFiniteDifferences) {
  constexpr double kStep = 1e-6;
  Router router;
  const at::Tensor weight = router.weight.clone().requires_grad_(true);
  router.balance(weight).backward();
  for (std::int64_t i = 0; i < weight.numel(); ++i) {
    const auto moved = [&](double by) {
      at::Tensor copy = router.weight.clone();
      copy.view(-1)[i] += by;
      return router.balance(copy).item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR(weight.grad().view(-1)[i].item<double>(), slope, 1e-8) << i;
  }
}

Decoder model_named(const std::string& name) {
  NativeProgram program;
  program.model = name;
  program.dtype = "fp32";
  return make_model(name, program, 7);
}

at::Tensor some_tokens() { return at::arange(24, at::kLong).reshape({2, 12}); }

TEST_F(Experts, HaveABalanceThatReachesEveryRouter) {
  const Decoder model = model_named("minimind_moe");
  model.hidden(some_tokens());
  model.balance().backward();
  int routers = 0;
  for (const ModelTensor& tensor : model.parameters()) {
    if (!tensor.name.ends_with("mlp.gate.weight")) continue;
    ++routers;
    ASSERT_TRUE(tensor.value.grad().defined()) << tensor.name;
    EXPECT_GT(tensor.value.grad().abs().max().item<double>(), 0) << tensor.name;
  }
  EXPECT_EQ(routers, 8);
}

TEST_F(Experts, HaveTheBalanceOfTheLastForward) {
  const Decoder model = model_named("minimind_moe");
  model.hidden(some_tokens());
  const double once = model.balance().item<double>();
  EXPECT_NEAR(once, 8, 2);  // eight layers, each about 1
  model.logits(some_tokens());
  EXPECT_EQ(model.balance().item<double>(), once);
  const Decoder dense = model_named("minimind");
  dense.hidden(some_tokens());
  EXPECT_FALSE(dense.balance().defined());
}

}  // namespace
}  // namespace gradcheck::native
