// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "numeric/kernel.h"

namespace gradcheck::native {
namespace {

constexpr std::size_t kChunkBytes = 16 * 1024;  // whole elements of every dtype; stays in L1

}  // namespace

DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return DType::f64;
    case at::kFloat:
      return DType::f32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kLong:
      return DType::i64;
    case at::kInt:
      return DType::i32;
    case at::kByte:
      return DType::u8;
    case at::kBool:
      return DType::boolean;
    default:
      return DType::other;
  }
}

std::vector<std::int64_t> shape_of(const at::Tensor& tensor) { return tensor.sizes().vec(); }

at::Tensor row_major(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().contiguous() : tensor;
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

TensorStats copy_and_measure(const at::Tensor& from, const at::Tensor& to, std::uint64_t first) {
  const at::NoGradGuard no_grad;
  Kernel kernel(dtype_of(to), KernelMode::full, first);
  if (!from.is_contiguous()) {
    to.copy_(from);
    kernel.update(bytes_of(to));
    return kernel.finish();
  }
  const auto source = bytes_of(from);
  auto* target = static_cast<std::byte*>(to.mutable_data_ptr());
  for (std::size_t start = 0; start < source.size(); start += kChunkBytes) {
    const auto chunk = source.subspan(start, std::min(kChunkBytes, source.size() - start));
    std::memcpy(target + start, chunk.data(), chunk.size());
    kernel.update({target + start, chunk.size()});
  }
  return kernel.finish();
}

std::uint64_t bytes_in(const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

}  // namespace gradcheck::native
