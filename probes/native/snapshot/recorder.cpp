// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/recorder.h"

#include <utility>

#include "probes/native/snapshot/tensor_bytes.h"

namespace gradcheck::native {
namespace {

TensorRecord describe(const at::Tensor& tensor, const TensorStats& stats) {
  TensorRecord record;
  record.shape = shape_of(tensor);
  record.dtype = dtype_of(tensor);
  record.stats = stats;
  record.state = state_of(stats);
  return record;
}

TensorStats digest_of(const at::Tensor& tensor) {
  return measure(dtype_of(tensor), bytes_of(tensor), KernelMode::digest_only);
}

TensorRecord describe(const at::Tensor& tensor, const TensorStats& stats,
                      std::optional<ShardPlace> shard) {
  TensorRecord record = describe(tensor, stats);
  if (shard) record.layout = "shard";
  record.shard = std::move(shard);
  return record;
}

bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

}  // namespace

Recorder::Recorder(std::string model, const ModelTensors& parameters, const ModelTensors& buffers,
                   Sharding sharding, Journal& journal, const Faults& faults)
    : model_(std::move(model)),
      parameters_(parameters),
      buffers_(buffers),
      sharding_(sharding),
      journal_(journal),
      faults_(faults),
      arrived_(parameters.size()),
      reduced_(parameters.size()) {
  reserve();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    hooks_.emplace_back();
    if (!parameters[i].value.requires_grad()) continue;
    hooks_[i] = parameters[i].value.register_hook([this, i](const at::Tensor& gradient) {
      const auto time = watch_.run();
      arrived_[i] = sample(journal_.micro(), Stage::local, parameters_[i].name, {gradient, {}});
    });
  }
}

// Touches the memory that every step copies to, so that no step pays for finding its pages.
void Recorder::reserve() {
  for (const ModelTensor& parameter : parameters_) {
    for (const Stage stage : {Stage::start, Stage::local, Stage::reduced}) {
      clones_.space(0, stage, key(parameter.name), parameter.value).zero_();
    }
  }
}

Recorder::~Recorder() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    if (hooks_[i]) parameters_[i].value.remove_hook(*hooks_[i]);
  }
}

void Recorder::record_start() {
  const auto time = watch_.run();
  Moment moment{Stage::start, 0};
  add_parameters(moment);
  add_buffers(moment);
  close(moment);
}

void Recorder::record_next_forward() {
  const auto time = watch_.run();
  Moment moment{Stage::next_forward, 0};
  add_buffers(moment);
  close(moment);
}

void Recorder::record_local() {
  const auto time = watch_.run();
  Moment moment{Stage::local, journal_.micro()};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Sample gradient = std::exchange(arrived_[i], {});
    if (!parameters_[i].value.requires_grad()) continue;
    if (faults_.hides_local(parameters_[i].name, journal_.step())) continue;
    add_gradient(moment, parameters_[i].name, gradient);
  }
  close(moment);
}

void Recorder::record_reduced() {
  const auto time = watch_.run();
  Moment moment{Stage::reduced, journal_.micro()};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, value] = parameters_[i];
    if (!value.requires_grad()) continue;
    const Sample reduced = sample(moment.micro, moment.stage, name, gradient(i));
    reduced_[i] = reduced.stats.digest;
    add_gradient(moment, name, reduced);
  }
  close(moment);
}

void Recorder::record_final() {
  const auto time = watch_.run();
  Moment moment{Stage::final, journal_.micro()};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].value.requires_grad()) add_final(moment, i, reduced_[i]);
  }
  close(moment);
}

void Recorder::record_after() {
  const auto time = watch_.run();
  Moment moment{Stage::after, journal_.micro()};
  add_parameters(moment);
  add_buffers(moment);
  close(moment);
}

std::optional<ShardPlace> Recorder::place_of(std::size_t parameter) const {
  if (sharding_.owned == nullptr) return std::nullopt;
  const OwnedShard& shard = (*sharding_.owned)[parameter];
  return ShardPlace{static_cast<std::uint64_t>(shard.offset), shard.shape};
}

Recorder::Held Recorder::parameter(std::size_t i) const {
  if (!sharding_.of_parameters) return {parameters_[i].value, {}};
  return {(*sharding_.owned)[i].value, place_of(i)};
}

Recorder::Held Recorder::gradient(std::size_t i) const {
  if (sharding_.owned == nullptr) return {parameters_[i].value.grad(), {}};
  return {(*sharding_.owned)[i].value.grad(), place_of(i)};
}

// After the step nothing changes any more before the front has its answers, so no copy is needed.
at::Tensor Recorder::keep(const Moment& moment, const std::string& name, const at::Tensor& tensor) {
  at::Tensor kept = row_major(tensor);
  if (moment.stage != Stage::after) {
    kept = clones_.space(moment.micro, moment.stage, key(name), kept).copy_(kept);
  }
  clones_.keep(moment.micro, moment.stage, key(name), kept);
  return kept;
}

void Recorder::add_parameters(Moment& moment) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, value] = parameters_[i];
    const Held held = parameter(i);
    const at::Tensor kept = keep(moment, name, held.tensor);
    TensorRecord record = describe(kept, digest_of(kept), held.shard);
    record.requires_grad = value.requires_grad();
    send(moment, TensorKind::param, name, std::move(record));
  }
}

void Recorder::add_buffers(Moment& moment) {
  for (const auto& [name, value] : buffers_) {
    const at::Tensor kept = keep(moment, name, value);
    send(moment, TensorKind::buffer, name, describe(kept, digest_of(kept)));
  }
}

Recorder::Sample Recorder::sample(std::int64_t micro, Stage stage, const std::string& name,
                                  const Held& gradient) {
  const auto& [tensor, shard] = gradient;
  if (!tensor.defined()) return {};
  const at::Tensor copy = clones_.space(micro, stage, key(name), tensor);
  return {copy, copy_and_measure(tensor, copy, shard ? shard->offset : 0), shard};
}

void Recorder::add_gradient(Moment& moment, const std::string& name, const Sample& sample) {
  if (!sample.copy.defined()) return send(moment, TensorKind::grad, name, {});
  clones_.keep(moment.micro, moment.stage, key(name), sample.copy);
  send(moment, TensorKind::grad, name, describe(sample.copy, sample.stats, sample.shard));
}

// Bit for bit what was reduced (−0 is not +0 here, and a NaN is itself): then the copy that is
// there serves both stages, and the digest is all there is to say.
void Recorder::add_final(Moment& moment, std::size_t parameter, const Digest& reduced) {
  const std::string& name = parameters_[parameter].name;
  const Held held = this->gradient(parameter);
  const at::Tensor gradient = row_major(held.tensor);
  const auto& copies = clones_.at(moment.micro, Stage::reduced);
  const auto before = copies.find(key(name));
  if (gradient.defined() && before != copies.end()) {
    const TensorStats stats = digest_of(gradient);
    if (stats.digest == reduced && same_form(gradient, before->second)) {
      clones_.keep(moment.micro, moment.stage, key(name), before->second);
      return send(moment, TensorKind::grad, name, describe(gradient, stats, held.shard));
    }
  }
  add_gradient(moment, name, sample(moment.micro, moment.stage, name, {gradient, held.shard}));
}

void Recorder::send(Moment& moment, TensorKind kind, const std::string& name, TensorRecord record) {
  record.step = journal_.step();
  record.micro = moment.micro;
  record.stage = moment.stage;
  record.kind = kind;
  record.model = model_;
  record.name = name;
  journal_.send(record);
  ++moment.tensors;
}

void Recorder::close(const Moment& moment) {
  if (faults_.hides_mark(moment.stage, journal_.step())) return;
  journal_.send(MarkRecord{journal_.step(), moment.micro, moment.stage, model_, moment.tensors});
}

}  // namespace gradcheck::native
