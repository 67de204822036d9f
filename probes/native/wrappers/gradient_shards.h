// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "probes/native/models/model_tensor.h"
#include "probes/native/wrappers/sharded_unit.h"

namespace gradcheck::native {

// Units in the order in which their gradients are reduced: indices of parameters.
using Units = std::vector<std::vector<std::size_t>>;

// A model's parameters in units, whose gradients are reduce-scattered as they come: hooks behind
// the accumulation move each gradient to its unit and leave the parameter without one; a full unit
// is reduced at once, but never before the units ahead of it, so that all ranks call collectives in
// one order; the end of the backward reduces the rest. Nobody has to announce the backward.
// The hooks sit on the parameters as long as this object lives.
class GradientShards {
 public:
  GradientShards(const ModelTensors& parameters, const Units& units, Cut cut, const Group& group,
                 bool divides);
  ~GradientShards();
  GradientShards(const GradientShards&) = delete;
  GradientShards& operator=(const GradientShards&) = delete;

  const std::vector<OwnedShard>& owned() const { return owned_; }  // by parameter
  // All-gathers every unit: the whole parameters, in order.
  std::vector<at::Tensor> gather() const;

 private:
  class Hook;
  struct Place {
    std::size_t unit = 0;
    std::size_t index = 0;  // in the unit
  };
  void arrived(std::size_t parameter, const at::Tensor& value);
  void reduce_up_to(std::size_t end);
  void reduce_full_ones();

  ModelTensors parameters_;
  Units members_;
  std::vector<ShardedUnit> units_;
  std::vector<Place> places_;  // by parameter
  std::vector<OwnedShard> owned_;
  std::size_t next_ = 0;  // unit to be reduced next
  bool in_backward_ = false;
};

}  // namespace gradcheck::native
