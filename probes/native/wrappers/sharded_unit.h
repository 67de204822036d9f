// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "probes/native/fabric/group.h"
#include "probes/native/models/model_tensor.h"
#include "probes/native/wrappers/shard_layout.h"

namespace gradcheck::native {

// What this rank owns of one parameter: elements [offset, offset + value.numel()) of it, row-major.
// `value` is a leaf of one dimension, what the optimizer steps; its gradient is what was reduced.
struct OwnedShard {
  at::Tensor value;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;  // of the whole parameter
};

// Some parameters whose elements move in one collective: this rank's part of them, and a flat
// buffer for their gradients, in rank order. A gradient that never came counts as zeros.
class ShardedUnit {
 public:
  // Takes its part out of the parameters, which are whole and equal on all ranks. Its buffers are
  // of one dtype, that of the first parameter.
  ShardedUnit(ModelTensors parameters, Cut cut, const Group& group, bool divides);

  std::size_t size() const { return parameters_.size(); }
  const OwnedShard& owned(std::size_t parameter) const { return owned_[parameter]; }

  // All-gathers the parts: the whole parameters, in order.
  std::vector<at::Tensor> gather() const;

  // Keeps a whole local gradient until reduce().
  void take(std::size_t parameter, const at::Tensor& gradient);
  bool is_full() const { return taken_ == trainable_; }
  // Reduce-scatters what was taken and adds this rank's part to the gradients of what it owns.
  void reduce();

 private:
  at::Tensor piece_of(const at::Tensor& flat, std::size_t rank, std::size_t parameter) const;

  ModelTensors parameters_;
  ShardLayout layout_;
  const Group& group_;
  bool divides_;
  at::Tensor part_;       // [part]: the owned elements and padding
  at::Tensor gradients_;  // [ranks · part]
  std::vector<OwnedShard> owned_;
  std::size_t taken_ = 0;
  std::size_t trainable_ = 0;
};

}  // namespace gradcheck::native
