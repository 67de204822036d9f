// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/sharded_model.h"

#include <torch/csrc/autograd/engine.h>

#include <utility>

#include "probes/native/wrappers/announcements.h"

namespace gradcheck::native {

ShardedModel::ShardedModel(Kind kind, std::string model, const ModelTensors& parameters,
                           const Units& units, const Fabric& fabric, const WrapperOptions& options,
                           Journal& journal)
    : kind_(std::move(kind)),
      model_(std::move(model)),
      parameters_(parameters),
      journal_(journal),
      shards_(parameters, units, kind_.cut, fabric.group(), options.hook != "sum") {
  announce_sharding(model_, kind_.name, options.hook, fabric.group(), journal);
  say_modelled(kind_.modelled, journal);
  release();
}

void ShardedModel::gather() {
  if (std::exchange(whole_, true)) return;
  const auto whole = shards_.gather();
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].value.set_data(whole[i]);
}

void ShardedModel::release() {
  if (!std::exchange(whole_, false)) return;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].value.set_data(kind_.rest(owned()[i]).detach());
  }
}

// An exception leaves the parameters whole: the rank is at its end then.
at::Tensor ShardedModel::forward(const std::function<at::Tensor()>& body) {
  const bool grad = at::GradMode::is_enabled();
  gather();
  at::Tensor output = announced_forward(model_, grad, inside_, journal_, body);
  release();
  if (!grad || !output.requires_grad()) return output;
  armed_ = true;
  output.register_hook([this](const at::Tensor&) { begin_backward(); });
  return output;
}

// Several outputs of one backward ask for the parameters once.
void ShardedModel::begin_backward() {
  if (whole_) return;
  gather();
  torch::autograd::Engine::get_default_engine().queue_callback([this] { release(); });
}

}  // namespace gradcheck::native
