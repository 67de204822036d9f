// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/policy.h"

#include <optional>
#include <utility>

namespace gradcheck::native {
namespace {

void say_what_is_modelled(const NativeProgram& program, Journal& journal) {
  if (program.loss != "fused" || program.path != "redirected") return;
  if (!program.wrapper.options.optimize_ddp) return;
  EventRecord note;
  note.text = "modelled: the compiler's graph splitter (DDPOptimizer)";
  journal.event(std::move(note));
}

}  // namespace

Policy::Policy(std::string name, Decoder model, std::unique_ptr<Wrapper> wrapper,
               const NativeProgram& program, Journal& journal)
    : name_(std::move(name)),
      model_(std::move(model)),
      wrapper_(std::move(wrapper)),
      program_(program),
      journal_(journal) {
  say_what_is_modelled(program, journal);
}

at::Tensor Policy::run(const std::function<at::Tensor(const Forward&)>& loss) {
  const std::string& path = program_.path;
  if (path == "wrapped") return loss(through_wrapper(false));
  if (path == "hidden_states") return loss(through_wrapper(true));
  if (path == "wrapped_twice") {
    const at::Tensor first = loss(through_wrapper(false));
    return (first + loss(through_wrapper(false))) / 2;
  }
  if (path == "redirected") {
    const bool splits = program_.wrapper.options.optimize_ddp;
    return wrapper_->forward([&] { return loss(past_wrapper(splits)); });
  }
  forward_and_drop(loss);
  return loss(past_wrapper(false));
}

Decoder Policy::perturbed_copy(double relative, std::uint64_t seed) {
  if (!wrapper_) return model_.perturbed_copy(relative, seed);
  std::optional<Decoder> copy;
  wrapper_->with_whole_parameters([&] { copy = model_.perturbed_copy(relative, seed); });
  return std::move(*copy);
}

// As a logging or evaluation forward does.
void Policy::forward_and_drop(const std::function<at::Tensor(const Forward&)>& loss) {
  if (program_.path == "stray_arm") loss(through_wrapper(false));
  if (program_.path != "no_grad_first") return;
  const at::NoGradGuard no_grad;
  loss(through_wrapper(false));
}

Forward::Features Policy::inner(Method method) {
  return [this, method](const at::Tensor& tokens) {
    enter();
    return (model_.*method)(tokens);
  };
}

Forward::Features Policy::outer(Method method) {
  return [this, method](const at::Tensor& tokens) {
    return wrapper_->forward([&] { return inner(method)(tokens); });
  };
}

// A roll-out meets the module before the step's first forward, whose buffers are recorded.
Forward::Features Policy::bare(Method method) {
  return [this, method](const at::Tensor& tokens) {
    record_entry();
    return (model_.*method)(tokens);
  };
}

at::Tensor Policy::roll_out(bool eval, const std::function<at::Tensor(const Forward&)>& compute) {
  const at::NoGradGuard no_grad;
  std::optional<EvalMode> mode;
  if (eval) mode.emplace(model_);
  const Forward module(model_, program_.loss, bare(&Decoder::hidden), {}, bare(&Decoder::values),
                       false);
  return compute(module);
}

Forward Policy::past_wrapper(bool split_graph) {
  return {model_, program_.loss, inner(&Decoder::hidden), {}, inner(&Decoder::values), split_graph};
}

Forward Policy::through_wrapper(bool hidden_states) {
  return {model_,
          program_.loss,
          outer(&Decoder::hidden),
          hidden_states ? Forward::Features() : outer(&Decoder::logits),
          outer(&Decoder::values),
          false};
}

void Policy::record_entry() {
  if (!wrapper_ || wrapper_->inside_forward()) return;
  EventRecord event;
  event.type = EventType::inner_forward;
  event.model = name_;
  event.grad_mode = at::GradMode::is_enabled();
  journal_.event(std::move(event));
}

void Policy::enter() {
  record_entry();
  on_enter_();
}

}  // namespace gradcheck::native
