// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/fused.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <string>

#include "probes/native/losses/token_log_probs.h"
#include "probes/native/trainers/dpo.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

constexpr std::int64_t kPairs = 3;

struct Problem {
  Sequences sequences;
  at::Tensor hidden;
  at::Tensor head;
  FusedReference reference;
  at::Tensor reference_log_probs;  // of sequences, by the dense form
};

Problem make_problem(std::int64_t vocabulary = 40) {
  auto generator = at::detail::createCPUGenerator(11);
  const auto draw = [&](std::vector<std::int64_t> shape) {
    return at::randn(shape, generator, at::TensorOptions(at::kDouble));
  };
  Problem problem;
  problem.sequences = make_pairs({5, 0, 0, 0}, 2 * kPairs, vocabulary);
  problem.hidden = draw({2 * kPairs, problem.sequences.tokens.size(1), 8});
  problem.head = draw({vocabulary, 8});
  problem.reference = {draw({2 * kPairs, problem.sequences.tokens.size(1), 8}),
                       draw({vocabulary, 8})};
  problem.reference_log_probs =
      token_log_probs("dense", problem.reference.hidden, problem.reference.head, problem.sequences)
          .sum(-1);
  return problem;
}

PairLogProbs split(const at::Tensor& policy, const at::Tensor& reference) {
  const std::int64_t pairs = policy.size(0) / 2;
  return {policy.narrow(0, 0, pairs),        policy.narrow(0, pairs, pairs),
          reference.narrow(0, 0, pairs),     reference.narrow(0, pairs, pairs),
          at::full({pairs}, 5, at::kDouble), at::full({pairs}, 6, at::kDouble),
          at::full({1}, 0.1, at::kDouble)};
}

FusedBatch fused_batch(const Problem& problem) {
  FusedBatch batch;
  batch.sequences = problem.sequences;
  batch.reference = problem.reference;
  for (std::int64_t pair = 0; pair < kPairs; ++pair) {
    const at::Tensor rows = at::arange(pair, 2 * kPairs, kPairs, at::kLong);
    batch.chunks.push_back({rows, [](const at::Tensor& policy, const at::Tensor& reference) {
                              return dpo_loss({{"sigmoid", 1}}, split(policy, reference), {}) /
                                     kPairs;
                            }});
  }
  return batch;
}

struct Result {
  at::Tensor value, d_hidden, d_head;
};

template <typename Loss>
Result evaluate(const Problem& problem, Loss loss) {
  const at::Tensor hidden = problem.hidden.clone().requires_grad_(true);
  const at::Tensor head = problem.head.clone().requires_grad_(true);
  const at::Tensor value = loss(hidden, head);
  (value * 0.7).backward();
  return {value.detach(), hidden.grad(), head.grad()};
}

Result evaluate_form(const std::string& form, const Problem& problem,
                     const std::string& objective) {
  return evaluate(problem, [&](const at::Tensor& hidden, const at::Tensor& head) {
    const at::Tensor policy = token_log_probs(form, hidden, head, problem.sequences).sum(-1);
    return dpo_loss({{objective, 1}}, split(policy, problem.reference_log_probs),
                    {.label_smoothing = 0.1});
  });
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

void expect_equal(const Result& a, const Result& b) {
  EXPECT_LE(distance(a.value, b.value), 1e-12);
  EXPECT_LE(distance(a.d_hidden, b.d_hidden), 1e-12);
  EXPECT_LE(distance(a.d_head, b.d_head), 1e-12);
  EXPECT_GT(a.d_head.abs().max().item<double>(), 1e-4);
}

class FusedLoss : public OneThread {};
class DpoForms : public OneThread, public ::testing::WithParamInterface<const char*> {};

TEST_F(FusedLoss, EqualsDenseAndChunkedInValueAndGradient) {
  const Problem problem = make_problem();
  const Result fused = evaluate(problem, [&](const at::Tensor& hidden, const at::Tensor& head) {
    return fused_loss(hidden, head, fused_batch(problem));
  });
  const auto plain = [&](const std::string& form) {
    return evaluate(problem, [&](const at::Tensor& hidden, const at::Tensor& head) {
      const at::Tensor policy = token_log_probs(form, hidden, head, problem.sequences).sum(-1);
      return dpo_loss({{"sigmoid", 1}}, split(policy, problem.reference_log_probs), {});
    });
  };
  expect_equal(fused, plain("dense"));
  expect_equal(fused, plain("chunked"));
}

TEST_P(DpoForms, DenseEqualsChunkedInValueAndGradient) {
  const Problem problem = make_problem();
  expect_equal(evaluate_form("dense", problem, GetParam()),
               evaluate_form("chunked", problem, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Objectives, DpoForms,
                         ::testing::Values("sigmoid", "hinge", "ipo", "robust", "exo_pair",
                                           "nca_pair", "bco_pair", "sppo_hard", "aot",
                                           "aot_unpaired", "apo_zero", "apo_down", "discopop",
                                           "sft", "sigmoid_norm"));

// Reference log-probs that need no gradient must not get one, though they are made inside.
TEST_F(FusedLoss, LeavesTheReferenceAlone) {
  Problem problem = make_problem();
  problem.reference.head.requires_grad_(true);
  const at::Tensor head = problem.head.clone().requires_grad_(true);
  fused_loss(problem.hidden, head, fused_batch(problem)).backward();
  EXPECT_TRUE(head.grad().defined());
  EXPECT_FALSE(problem.reference.head.grad().defined());
}

TEST_F(FusedLoss, FiresNoHookOfItsInputsBeforeTheBackward) {
  const Problem problem = make_problem();
  const at::Tensor head = problem.head.clone().requires_grad_(true);
  int fired = 0;
  head.register_hook([&](const at::Tensor&) { ++fired; });
  const at::Tensor value = fused_loss(problem.hidden, head, fused_batch(problem));
  EXPECT_EQ(fired, 0);
  value.backward();
  EXPECT_EQ(fired, 1);
}

TEST_F(FusedLoss, RaisesWhereAFunctorchTensorCrossesASplit) {
  const Problem problem = make_problem(20000);  // 1.28 MB in float64
  FusedBatch batch = fused_batch(problem);
  batch.split_graph = true;
  try {
    fused_loss(problem.hidden, problem.head, batch);
    FAIL() << "nothing was raised";
  } catch (const c10::NotImplementedError& error) {
    EXPECT_EQ(std::string(error.what_without_backtrace()),
              "Cannot access storage of TensorWrapper");
  }
  batch.split_graph = false;
  EXPECT_TRUE(fused_loss(problem.hidden, problem.head, batch).isfinite().item<bool>());
}

TEST_F(FusedLoss, SmallHeadIsNotSplit) {
  const Problem problem = make_problem(1000);
  FusedBatch batch = fused_batch(problem);
  batch.split_graph = true;
  EXPECT_TRUE(fused_loss(problem.hidden, problem.head, batch).isfinite().item<bool>());
}

}  // namespace
}  // namespace gradcheck::native
