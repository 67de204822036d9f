// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/log_probs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

using LogProbs = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                const LogProbOptions&);

struct Result {
  at::Tensor value;
  at::Tensor d_hidden;
  at::Tensor d_head;
};

// Positions of one problem; every call draws the same numbers.
struct Problem {
  at::Tensor hidden;
  at::Tensor head;
  at::Tensor targets;
  at::Tensor weights;
};

Problem make_problem(std::int64_t positions, std::int64_t vocabulary, at::ScalarType dtype) {
  auto generator = at::detail::createCPUGenerator(11);
  const auto draw = [&](std::vector<std::int64_t> shape) {
    return at::randn(shape, generator, at::TensorOptions(at::kDouble)).to(dtype);
  };
  Problem problem{draw({positions, 8}), draw({vocabulary, 8}), {}, draw({positions})};
  problem.targets = at::randint(vocabulary, {positions}, generator, at::TensorOptions(at::kLong));
  return problem;
}

Result evaluate(LogProbs log_probs, const Problem& problem, const LogProbOptions& options) {
  const at::Tensor hidden = problem.hidden.detach().clone().requires_grad_(true);
  const at::Tensor head = problem.head.detach().clone().requires_grad_(true);
  const at::Tensor value = log_probs(hidden, head, problem.targets, options);
  (value * problem.weights).sum().backward();
  return {value.detach(), hidden.grad(), head.grad()};
}

class ChunkedLogProbs : public OneThread {};

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

void expect_parity(const Problem& problem, const LogProbOptions& options, double bound) {
  const Result chunked = evaluate(chunked_log_probs, problem, options);
  const Result dense = evaluate(dense_log_probs, problem, options);
  EXPECT_LE(distance(chunked.value, dense.value), bound);
  EXPECT_LE(distance(chunked.d_hidden, dense.d_hidden), bound);
  EXPECT_LE(distance(chunked.d_head, dense.d_head), bound);
}

TEST_F(ChunkedLogProbs, EqualDenseInDoubleForAnyTile) {
  for (const std::int64_t tile : {1, 7, 16, 40, 64}) {
    expect_parity(make_problem(37, 40, at::kDouble), {.tile = tile}, 1e-12);
  }
}

TEST_F(ChunkedLogProbs, EqualDenseWithTemperatureSoftcapAndScale) {
  const LogProbOptions options{.temperature = 0.7, .softcap = 3, .scale = 1.5, .tile = 9};
  expect_parity(make_problem(23, 40, at::kDouble), options, 1e-12);
}

TEST_F(ChunkedLogProbs, FindTargetsOnBothSidesOfATileBorder) {
  Problem problem = make_problem(4, 32, at::kDouble);
  const std::vector<std::int64_t> border = {0, 15, 16, 31};
  for (int i = 0; i < 4; ++i) problem.targets[i] = border[static_cast<std::size_t>(i)];
  expect_parity(problem, {.tile = 16}, 1e-12);
}

TEST_F(ChunkedLogProbs, SurviveLogitsThatOverflowAPlainSum) {
  Problem problem = make_problem(8, 32, at::kDouble);
  problem.head.mul_(1e4);
  const at::Tensor value = chunked_log_probs(problem.hidden, problem.head, problem.targets, {});
  EXPECT_TRUE(value.isfinite().all().item<bool>());
}

TEST_F(ChunkedLogProbs, AccumulateInSinglePrecisionForBFloat16) {
  const Problem problem = make_problem(37, 40, at::kBFloat16);
  const Result chunked = evaluate(chunked_log_probs, problem, {.tile = 16});
  EXPECT_EQ(chunked.value.scalar_type(), at::kFloat);
  EXPECT_EQ(chunked.d_head.scalar_type(), at::kBFloat16);
  expect_parity(problem, {.tile = 16}, 0.05);
}

TEST_F(ChunkedLogProbs, TellAWrongTargetFromARightOne) {
  Problem problem = make_problem(8, 32, at::kDouble);
  const at::Tensor right = dense_log_probs(problem.hidden, problem.head, problem.targets, {});
  problem.targets = (problem.targets + 1).remainder(32);
  const at::Tensor wrong = chunked_log_probs(problem.hidden, problem.head, problem.targets, {});
  EXPECT_GT(distance(right, wrong), 1e-3);
}

}  // namespace
}  // namespace gradcheck::native
