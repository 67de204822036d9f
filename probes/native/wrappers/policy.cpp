// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/policy.h"

#include <stdexcept>
#include <utility>

namespace gradcheck::native {
namespace {

void check_combination(const std::string& path, const std::string& loss, bool has_wrapper) {
  if (has_wrapper == (path == "direct")) {
    throw std::invalid_argument("path \"" + path + "\" " +
                                (has_wrapper ? "means no wrapper" : "needs a wrapper"));
  }
  if (path == "wrapped" && loss != "dense") {
    throw std::invalid_argument("path \"wrapped\" returns logits; loss \"" + loss +
                                "\" needs hidden states: use \"redirected\" or \"unwrapped\"");
  }
}

}  // namespace

Policy::Policy(Qwen3 model, std::unique_ptr<Ddp> wrapper, const NativeProgram& program,
               Journal& journal)
    : model_(std::move(model)),
      wrapper_(std::move(wrapper)),
      path_(program.path),
      loss_(program.loss),
      journal_(journal) {
  check_combination(path_, loss_, wrapper_ != nullptr);
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
