// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/policy.h"

#include <stdexcept>
#include <utility>

#include "model/native_parts.h"

namespace gradcheck::native {
namespace {

// Scenario files are held to the same rule; a program may come from elsewhere.
void check_combination(const NativeProgram& program) {
  const std::string problem = misfit_of_path(program.path, program.wrapper.kind, program.loss);
  if (!problem.empty()) throw std::invalid_argument(problem);
}

}  // namespace

Policy::Policy(Qwen3 model, std::unique_ptr<Ddp> wrapper, const NativeProgram& program,
               Journal& journal)
    : model_(std::move(model)),
      wrapper_(std::move(wrapper)),
      path_(program.path),
      loss_(program.loss),
      journal_(journal) {
  check_combination(program);
}

at::Tensor Policy::run(const std::function<at::Tensor(const SequenceLogProbs&)>& loss) {
  const auto inner = [this](const Sequences& sequences) { return inner_log_probs(sequences); };
  const auto outer = [this](const Sequences& sequences) { return wrapped_log_probs(sequences); };
  if (path_ == "wrapped") return loss(outer);
  if (path_ == "redirected") return wrapper_->forward([&] { return loss(inner); });
  return loss(inner);
}

at::Tensor Policy::inner_log_probs(const Sequences& sequences) {
  enter();
  return sequence_log_probs(loss_, model_, sequences);
}

at::Tensor Policy::wrapped_log_probs(const Sequences& sequences) {
  const at::Tensor logits = wrapper_->forward([&] {
    enter();
    return model_.logits(sequences.tokens);
  });
  return sequence_log_probs_from_logits(logits, sequences);
}

void Policy::enter() {
  if (wrapper_ && !wrapper_->inside_forward()) {
    EventRecord event;
    event.type = EventType::inner_forward;
    event.model = kPolicy;
    event.grad_mode = at::GradMode::is_enabled();
    journal_.event(std::move(event));
  }
  on_enter_();
}

}  // namespace gradcheck::native
