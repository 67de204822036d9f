// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainee.h"

#include <algorithm>
#include <cmath>
#include <source_location>
#include <string_view>
#include <utility>

#include "probes/native/models/model_table.h"
#include "probes/native/wrappers/guard.h"

namespace gradcheck::native {
namespace {

std::string site(std::source_location where = std::source_location::current()) {
  const std::string_view path = where.file_name();
  const auto start = path.rfind("probes/native");
  return std::string(path.substr(start == path.npos ? 0 : start)) + ":" +
         std::to_string(where.line());
}

bool leaves_expert_idle(const RunRecord& run) {
  const std::string& where = run.program.idle_expert;
  return where == "always" || (where == "on_rank_1" && run.rank == 1);
}

Recorder::Sharding sharding_of(const Wrapper* wrapper) {
  if (wrapper == nullptr) return {};
  return {wrapper->owned(), wrapper->shards_parameters()};
}

// A program with a guard takes the path that the guard chooses, and says so.
NativeProgram decided(NativeProgram program, const std::string& model, Journal& journal) {
  if (!program.path.empty()) return program;
  program.path = path_of(program.guard, program.wrapper.kind);
  EventRecord note;
  note.model = model;
  note.text = decision_text(program.guard, program.wrapper.kind);
  journal.event(std::move(note));
  return program;
}

}  // namespace

Trainee::Trainee(const std::string& name, const RunRecord& run, const Fabric* fabric,
                 Journal& journal, const Faults& faults)
    : name_(name), journal_(journal), faults_(faults) {
  Decoder decoder = make_model(run.program.model, run.program, run.seed);
  decoder.set_idle_experts(leaves_expert_idle(run) ? run.program.idle_experts : 0,
                           run.program.touch_idle_expert);
  check_target(run.program.fault, decoder.parameters(), decoder.buffers());
  std::unique_ptr<Wrapper> wrapper = Wrapper::make(name, decoder.parameters(), decoder.buffers(),
                                                   fabric, run.program.wrapper, journal);
  policy_ = std::make_unique<Policy>(name, std::move(decoder), std::move(wrapper),
                                     decided(run.program, name, journal), journal);
  policy_->on_enter([this] { on_inner_forward(); });
  const ModelTensors& parameters = policy_->model().parameters();
  recorder_ = std::make_unique<Recorder>(name, parameters, policy_->model().buffers(),
                                         sharding_of(policy_->wrapper()), journal, faults);
  optimizer_ = std::make_unique<AdamW>(stepped());
  if (faults.strikes_in("backward")) {  // in the midst of a backward, not before it
    parameters[parameters.size() / 2].value.register_hook(
        [this](const at::Tensor&) { faults_.strike("backward", journal_.step()); });
  }
}

ModelTensors Trainee::stepped() const {
  ModelTensors tensors = policy_->model().parameters();
  const auto* owned = policy_->wrapper() ? policy_->wrapper()->owned() : nullptr;
  for (std::size_t i = 0; owned != nullptr && i < tensors.size(); ++i) {
    tensors[i].value = (*owned)[i].value;
  }
  return tensors;
}

EventRecord Trainee::event(EventType type) const {
  EventRecord record;
  record.type = type;
  record.model = name_;
  return record;
}

void Trainee::on_inner_forward() {
  if (journal_.step() > buffers_seen_in_step_) {
    buffers_seen_in_step_ = journal_.step();
    recorder_->record_next_forward();
  }
  if (at::GradMode::is_enabled()) faults_.strike("forward", journal_.step());
}

void Trainee::corrupt_buffers(std::int64_t step) {
  for (const ModelTensor& buffer : policy_->model().buffers()) {
    if (faults_.corrupts_buffer(buffer.name, step)) buffer.value.detach().add_(0.5);
  }
}

void Trainee::start_step(std::int64_t step) {
  if (step == 0) recorder_->record_start();
  corrupt_buffers(step);
}

void Trainee::before_backward() {
  const Wrapper* wrapper = policy_->wrapper();
  EventRecord record = event(EventType::backward);
  record.site = site();
  if (wrapper) {
    record.armed = wrapper->armed();
    record.no_sync = wrapper->no_sync();
  }
  journal_.event(std::move(record));
}

void Trainee::after_backward() {
  if (policy_->wrapper()) policy_->wrapper()->after_backward();
}

std::vector<at::Tensor> Trainee::gradients() const {
  std::vector<at::Tensor> found;
  for (const ModelTensor& parameter : stepped()) {
    if (parameter.value.grad().defined()) found.push_back(parameter.value.grad());
  }
  return found;
}

bool Trainee::unscale(double scale) {
  bool finite = true;
  for (const at::Tensor& gradient : gradients()) {
    gradient.mul_(1 / scale);
    finite = finite && gradient.isfinite().all().item<bool>();
  }
  EventRecord record = event(EventType::unscale);
  record.scale = scale;
  journal_.event(std::move(record));
  return finite;
}

// As clip_grad_norm_: one norm over all gradients, one factor, only downwards.
void Trainee::clip(double max_norm) {
  double squares = 0;
  for (const at::Tensor& gradient : gradients()) squares += gradient.square().sum().item<double>();
  const double norm = std::sqrt(squares);
  const double factor = std::min(1.0, max_norm / (norm + 1e-6));
  for (const at::Tensor& gradient : gradients()) gradient.mul_(factor);
  EventRecord record = event(EventType::clip);
  record.norm = norm;
  record.max_norm = max_norm;
  journal_.event(std::move(record));
}

void Trainee::optimize(const NativeProgram& program) {
  const bool steps = program.grad_scale == 0 || unscale(program.grad_scale);
  if (steps && program.clip_norm > 0) clip(program.clip_norm);
  recorder_->record_final();
  if (steps) optimizer_->step();
  if (steps && policy_->wrapper()) policy_->wrapper()->after_step();
  EventRecord record = event(EventType::optimizer_step);
  record.optimizer = "AdamW";
  record.skipped = !steps;
  journal_.event(std::move(record));
  recorder_->record_after();
  if (faults_.keeps_gradients(journal_.step())) return;
  optimizer_->clear_gradients();
  journal_.event(event(EventType::grad_cleared));
}

}  // namespace gradcheck::native
