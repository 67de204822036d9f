// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/tensor_bytes.h"

namespace gradcheck::native {

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

at::Tensor row_major_copy(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.detach().clone(at::MemoryFormat::Contiguous);
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace gradcheck::native
