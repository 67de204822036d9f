// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/low_rank_hook.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include <utility>
#include <vector>

#include "probes/native/losses/accumulate.h"

namespace gradcheck::native {
namespace {

constexpr std::int64_t kRank = 2;
constexpr std::uint64_t kSeed = 0x10a2;  // the same on every rank and in every step

struct Matrix {
  at::Tensor gradient;  // the bucket's own memory
  at::Tensor m;         // [rows, columns], accumulator dtype
  at::Tensor p;         // [rows, kRank]
  at::Tensor q;         // [columns, kRank]
};

// Compression must save something; norm weights and biases are sent as they are.
bool is_worth_it(const at::Tensor& gradient) {
  return gradient.dim() == 2 && (gradient.size(0) + gradient.size(1)) * kRank < gradient.numel();
}

class LowRankHook : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  LowRankHook(const Group& group, bool reduced)
      : CppCommHookInterface(group.processes), reduced_(reduced) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::NoGradGuard no_grad;
    std::vector<Matrix> matrices;
    std::vector<at::Tensor> plain;
    for (const at::Tensor& gradient : bucket.getGradients()) {
      if (is_worth_it(gradient)) {
        matrices.push_back({gradient, gradient.to(accumulate_type(gradient)), {}, {}});
      } else {
        plain.push_back(gradient);
      }
    }
    reduce(plain);
    compress(matrices);
    for (Matrix& matrix : matrices) {
      matrix.gradient.copy_(matrix.p.matmul(matrix.q.t()));
    }
    auto done =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    done->markCompleted(c10::IValue(std::vector<at::Tensor>{bucket.getBuffer()}));
    return done;
  }

 private:
  void compress(std::vector<Matrix>& matrices) {
    auto generator = at::detail::createCPUGenerator(kSeed);
    std::vector<at::Tensor> left, right;
    for (Matrix& matrix : matrices) {
      const at::Tensor start = at::randn({matrix.m.size(1), kRank}, generator);
      left.push_back(matrix.p = matrix.m.matmul(start.to(matrix.m.scalar_type())));
    }
    if (reduced_) reduce(left);
    for (Matrix& matrix : matrices) {
      matrix.p = orthonormal_columns(matrix.p);
      right.push_back(matrix.q = matrix.m.t().matmul(matrix.p));
    }
    if (reduced_) reduce(right);
  }

  // To their means over the ranks, in place and in one collective.
  void reduce(const std::vector<at::Tensor>& tensors) {
    if (tensors.empty()) return;
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape(-1));
    std::vector<at::Tensor> sent = {at::cat(flat).div_(state_->getSize())};
    state_->allreduce(sent)->wait();
    std::int64_t start = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.copy_(sent[0].narrow(0, start, tensor.numel()).view_as(tensor));
      start += tensor.numel();
    }
  }

  bool reduced_;
};

}  // namespace

at::Tensor orthonormal_columns(const at::Tensor& matrix) {
  constexpr double kTiny = 1e-12;
  at::Tensor columns = matrix.clone();
  for (std::int64_t i = 0; i < columns.size(1); ++i) {
    at::Tensor column = columns.select(1, i);
    const double before = column.norm().item<double>();
    for (std::int64_t j = 0; j < i; ++j) {
      const at::Tensor other = columns.select(1, j);
      column.sub_(other * other.dot(column));
    }
    const double after = column.norm().item<double>();
    const bool depends = !(after > before * 1e-6 + kTiny);
    column.mul_(depends ? 0.0 : 1 / after);
  }
  return columns;
}

std::unique_ptr<c10d::CommHookInterface> make_low_rank_hook(const Group& group, bool reduced) {
  return std::make_unique<LowRankHook>(group, reduced);
}

}  // namespace gradcheck::native
