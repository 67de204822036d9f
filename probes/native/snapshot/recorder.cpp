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

bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

}  // namespace

Recorder::Recorder(std::string model, const ModelTensors& parameters, const ModelTensors& buffers,
                   Journal& journal, const Faults& faults)
    : model_(std::move(model)),
      parameters_(parameters),
      buffers_(buffers),
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
      arrived_[i] = sample(journal_.micro(), Stage::local, parameters_[i].name, gradient);
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
  add_all(moment, TensorKind::param, parameters_);
  add_all(moment, TensorKind::buffer, buffers_);
  close(moment);
}

void Recorder::record_next_forward() {
  const auto time = watch_.run();
  Moment moment{Stage::next_forward, 0};
  add_all(moment, TensorKind::buffer, buffers_);
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
    const Sample gradient = sample(moment.micro, moment.stage, name, value.grad());
    reduced_[i] = gradient.stats.digest;
    add_gradient(moment, name, gradient);
  }
  close(moment);
}

void Recorder::record_final() {
  const auto time = watch_.run();
  Moment moment{Stage::final, journal_.micro()};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].value.requires_grad()) add_final(moment, parameters_[i], reduced_[i]);
  }
  close(moment);
}

void Recorder::record_after() {
  const auto time = watch_.run();
  Moment moment{Stage::after, journal_.micro()};
  add_all(moment, TensorKind::param, parameters_);
  add_all(moment, TensorKind::buffer, buffers_);
  close(moment);
}

// After the step nothing changes any more before the front has its answers, so no copy is needed.
at::Tensor Recorder::keep(const Moment& moment, const ModelTensor& tensor) {
  at::Tensor kept = row_major(tensor.value);
  if (moment.stage != Stage::after) {
    kept = clones_.space(moment.micro, moment.stage, key(tensor.name), kept).copy_(kept);
  }
  clones_.keep(moment.micro, moment.stage, key(tensor.name), kept);
  return kept;
}

void Recorder::add_all(Moment& moment, TensorKind kind, const ModelTensors& tensors) {
  for (const ModelTensor& tensor : tensors) {
    const at::Tensor kept = keep(moment, tensor);
    TensorRecord record = describe(kept, digest_of(kept));
    if (kind == TensorKind::param) record.requires_grad = tensor.value.requires_grad();
    send(moment, kind, tensor.name, std::move(record));
  }
}

Recorder::Sample Recorder::sample(std::int64_t micro, Stage stage, const std::string& name,
                                  const at::Tensor& gradient) {
  if (!gradient.defined()) return {};
  const at::Tensor copy = clones_.space(micro, stage, key(name), gradient);
  return {copy, copy_and_measure(gradient, copy)};
}

void Recorder::add_gradient(Moment& moment, const std::string& name, const Sample& sample) {
  if (!sample.copy.defined()) return send(moment, TensorKind::grad, name, {});
  clones_.keep(moment.micro, moment.stage, key(name), sample.copy);
  send(moment, TensorKind::grad, name, describe(sample.copy, sample.stats));
}

// Bit for bit what was reduced (−0 is not +0 here, and a NaN is itself): then the copy that is
// there serves both stages, and the digest is all there is to say.
void Recorder::add_final(Moment& moment, const ModelTensor& parameter, const Digest& reduced) {
  const auto& [name, value] = parameter;
  const at::Tensor gradient = row_major(value.grad());
  const auto& copies = clones_.at(moment.micro, Stage::reduced);
  const auto before = copies.find(key(name));
  if (gradient.defined() && before != copies.end()) {
    const TensorStats stats = digest_of(gradient);
    if (stats.digest == reduced && same_form(gradient, before->second)) {
      clones_.keep(moment.micro, moment.stage, key(name), before->second);
      return send(moment, TensorKind::grad, name, describe(gradient, stats));
    }
  }
  add_gradient(moment, name, sample(moment.micro, moment.stage, name, gradient));
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
