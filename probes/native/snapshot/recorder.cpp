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

}  // namespace

Recorder::Recorder(const ModelTensors& parameters, const ModelTensors& buffers, Journal& journal,
                   const Faults& faults)
    : parameters_(parameters),
      buffers_(buffers),
      journal_(journal),
      faults_(faults),
      arrived_(parameters.size()) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    hooks_.push_back(parameters[i].value.register_hook([this, i](const at::Tensor& gradient) {
      const auto time = watch_.run();
      arrived_[i] = row_major_copy(gradient);
    }));
  }
}

Recorder::~Recorder() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) parameters_[i].value.remove_hook(hooks_[i]);
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
    const at::Tensor gradient = std::exchange(arrived_[i], at::Tensor());
    if (faults_.hides_local(parameters_[i].name, journal_.step())) continue;
    add(moment, TensorKind::grad, parameters_[i].name, gradient, KernelMode::full);
  }
  close(moment);
}

void Recorder::record_reduced() {
  const auto time = watch_.run();
  Moment moment{Stage::reduced, journal_.micro()};
  for (const ModelTensor& parameter : parameters_) {
    add(moment, TensorKind::grad, parameter.name, row_major_copy(parameter.value.grad()),
        KernelMode::full);
  }
  close(moment);
}

void Recorder::record_final() {
  const auto time = watch_.run();
  Moment moment{Stage::final, journal_.micro()};
  for (const ModelTensor& parameter : parameters_) {
    add_final(moment, parameter.name, parameter.value.grad());
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

// Full statistics only where something happened to the gradient since it was reduced; otherwise
// the copy that is already there serves both stages.
void Recorder::add_final(Moment& moment, const std::string& name, const at::Tensor& gradient) {
  const at::Tensor copy = row_major_copy(gradient);
  const auto& reduced = clones_.at(moment.micro, Stage::reduced);
  const auto before = reduced.find(name);
  if (!copy.defined() || before == reduced.end() || !copy.equal(before->second)) {
    return add(moment, TensorKind::grad, name, copy, KernelMode::full);
  }
  add(moment, TensorKind::grad, name, before->second, KernelMode::digest_only);
}

void Recorder::add_all(Moment& moment, TensorKind kind, const ModelTensors& tensors) {
  for (const ModelTensor& tensor : tensors) {
    add(moment, kind, tensor.name, row_major_copy(tensor.value), KernelMode::digest_only);
  }
}

void Recorder::add(Moment& moment, TensorKind kind, const std::string& name,
                   const at::Tensor& tensor, KernelMode mode) {
  if (!tensor.defined()) return send_record(moment, kind, name, tensor, {});
  clones_.keep(moment.micro, moment.stage, name, tensor);
  send_record(moment, kind, name, tensor, measure(dtype_of(tensor), bytes_of(tensor), mode));
}

void Recorder::send_record(Moment& moment, TensorKind kind, const std::string& name,
                           const at::Tensor& tensor, const TensorStats& stats) {
  TensorRecord record = tensor.defined() ? describe(tensor, stats) : TensorRecord{};
  record.step = journal_.step();
  record.micro = moment.micro;
  record.stage = moment.stage;
  record.kind = kind;
  record.model = kPolicy;
  record.name = name;
  if (kind == TensorKind::param) record.requires_grad = true;
  journal_.send(record);
  ++moment.tensors;
}

void Recorder::close(const Moment& moment) {
  if (faults_.hides_mark(moment.stage, journal_.step())) return;
  journal_.send(MarkRecord{journal_.step(), moment.micro, moment.stage, kPolicy, moment.tensors});
}

}  // namespace gradcheck::native
