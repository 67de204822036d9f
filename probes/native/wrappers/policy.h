// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "model/scenario.h"
#include "probes/native/losses/sequence_log_probs.h"
#include "probes/native/models/qwen3.h"
#include "probes/native/wrappers/ddp.h"

namespace gradcheck::native {

// The trained model, its wrapper if there is one, and the way the program goes through them:
//   wrapped     wrapper(model → logits), loss outside
//   redirected  wrapper(loss on the inner model)
//   unwrapped   loss on the inner model, past the wrapper
//   direct      there is no wrapper
class Policy {
 public:
  // Errors: std::invalid_argument for a combination of path, wrapper and loss that makes no sense.
  Policy(Qwen3 model, std::unique_ptr<Ddp> wrapper, const NativeProgram& program, Journal& journal);

  // Evaluates `loss` on this model; it is handed the model's sequence log-probs as a function.
  at::Tensor run(const std::function<at::Tensor(const SequenceLogProbs&)>& loss);

  // Called whenever the inner model is entered, before it computes anything.
  void on_enter(std::function<void()> callback) { on_enter_ = std::move(callback); }

  Qwen3& model() { return model_; }
  Ddp* wrapper() { return wrapper_.get(); }

 private:
  at::Tensor inner_log_probs(const Sequences& sequences);
  at::Tensor wrapped_log_probs(const Sequences& sequences);
  void enter();

  Qwen3 model_;
  std::unique_ptr<Ddp> wrapper_;
  std::string path_;
  std::string loss_;
  Journal& journal_;
  std::function<void()> on_enter_ = [] {};
};

}  // namespace gradcheck::native
