// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/gradient_shards.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

namespace gradcheck::native {

class GradientShards::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientShards& shards, std::size_t parameter) : shards_(shards), parameter_(parameter) {}
  void operator()(const at::Tensor& value) override { shards_.arrived(parameter_, value); }

 private:
  GradientShards& shards_;
  std::size_t parameter_;
};

GradientShards::GradientShards(const ModelTensors& parameters, const Units& units, Cut cut,
                               const Group& group, bool divides)
    : parameters_(parameters),
      members_(units),
      places_(parameters.size()),
      owned_(parameters.size()) {
  for (const auto& members : units) {
    ModelTensors own;
    for (std::size_t index = 0; index < members.size(); ++index) {
      own.push_back(parameters[members[index]]);
      places_[members[index]] = {units_.size(), index};
    }
    const ShardedUnit& unit = units_.emplace_back(std::move(own), cut, group, divides);
    for (std::size_t index = 0; index < members.size(); ++index) {
      owned_[members[index]] = unit.owned(index);
    }
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].value.requires_grad()) continue;
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[i].value,
                                                   std::make_unique<Hook>(*this, i));
  }
}

GradientShards::~GradientShards() {
  for (const ModelTensor& parameter : parameters_) {
    if (!parameter.value.requires_grad()) continue;
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.value, nullptr);
  }
}

std::vector<at::Tensor> GradientShards::gather() const {
  std::vector<at::Tensor> whole(parameters_.size());
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const auto tensors = units_[u].gather();
    for (std::size_t i = 0; i < tensors.size(); ++i) whole[members_[u][i]] = tensors[i];
  }
  return whole;
}

void GradientShards::arrived(std::size_t parameter, const at::Tensor& value) {
  if (!in_backward_) {
    in_backward_ = true;
    torch::autograd::Engine::get_default_engine().queue_callback([this] {
      reduce_up_to(units_.size());
      next_ = 0;
      in_backward_ = false;
    });
  }
  const Place& place = places_[parameter];
  at::Tensor owner = value;
  units_[place.unit].take(place.index, owner.grad());
  owner.mutable_grad().reset();
  reduce_full_ones();
}

void GradientShards::reduce_full_ones() {
  std::size_t end = next_;
  while (end < units_.size() && units_[end].is_full()) ++end;
  reduce_up_to(end);
}

void GradientShards::reduce_up_to(std::size_t end) {
  for (; next_ < end; ++next_) units_[next_].reduce();
}

}  // namespace gradcheck::native
