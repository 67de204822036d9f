// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/low_rank_hook.h"

#include <gtest/gtest.h>

#include "probes/native/wrappers/comm_hooks.h"

namespace gradcheck::native {
namespace {

at::Tensor gram(const at::Tensor& columns) { return columns.t().matmul(columns); }

TEST(LowRankHook, OrthonormalisesColumns) {
  const at::Tensor columns = orthonormal_columns(at::arange(12, at::kDouble).square().view({4, 3}));
  const at::Tensor identity = at::arange(3).unsqueeze(0).eq(at::arange(3).unsqueeze(1));
  EXPECT_LT((gram(columns) - identity.to(at::kDouble)).abs().max().item<double>(), 1e-9);
}

TEST(LowRankHook, TurnsAColumnThatDependsOnOthersIntoZero) {
  const at::Tensor one = at::arange(1, 5, at::kDouble);
  const at::Tensor columns = orthonormal_columns(at::stack({one, one * 3, at::zeros({4})}, 1));
  EXPECT_NEAR(columns.select(1, 0).norm().item<double>(), 1, 1e-12);
  EXPECT_EQ(columns.narrow(1, 1, 2).abs().max().item<double>(), 0);
}

TEST(CommHooks, OnlyTheLowRankOnesPromiseNoMean) {
  EXPECT_EQ(promise_of_hook("none").reduce, "mean");
  EXPECT_EQ(promise_of_hook("sum").reduce, "mean");
  EXPECT_EQ(promise_of_hook("fp16_compress").wire_dtype, "f16");
  EXPECT_EQ(promise_of_hook("power_sgd").reduce, "lossy");
  EXPECT_EQ(promise_of_hook("power_sgd_unreduced").reduce, "lossy");
  EXPECT_THROW(promise_of_hook("nobody's"), std::invalid_argument);
}

}  // namespace
}  // namespace gradcheck::native
