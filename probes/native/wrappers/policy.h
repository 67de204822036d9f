// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "model/scenario.h"
#include "probes/native/models/decoder.h"
#include "probes/native/wrappers/forward.h"
#include "probes/native/wrappers/wrapper.h"

namespace gradcheck::native {

// A trained model, its wrapper if there is one, and the way the program goes through them:
//   wrapped        wrapper(model → logits), loss outside
//   redirected     wrapper(loss on the inner model)
//   hidden_states  wrapper(model → hidden states), head and loss outside
//   unwrapped      loss on the inner model, past the wrapper
//   no_grad_first  a wrapped forward without gradients, then unwrapped
//   stray_arm      a wrapped forward whose output is dropped, then unwrapped
//   wrapped_twice  wrapped, two losses before one backward
//   direct         there is no wrapper
class Policy {
 public:
  Policy(std::string name, Decoder model, std::unique_ptr<Wrapper> wrapper,
         const NativeProgram& program, Journal& journal);

  // Evaluates `loss` on this model.
  at::Tensor run(const std::function<at::Tensor(const Forward&)>& loss);

  // Evaluates it on the inner module without gradients, in evaluation mode if `eval`: a roll-out.
  at::Tensor roll_out(bool eval, const std::function<at::Tensor(const Forward&)>& compute);

  // As the model's, also where its parameters are sharded.
  Decoder perturbed_copy(double relative, std::uint64_t seed);

  // Called whenever the inner model is entered, before it computes anything.
  void on_enter(std::function<void()> callback) { on_enter_ = std::move(callback); }

  const std::string& name() const { return name_; }
  Decoder& model() { return model_; }
  Wrapper* wrapper() { return wrapper_.get(); }

 private:
  using Method = at::Tensor (Decoder::*)(const at::Tensor& tokens) const;
  Forward::Features inner(Method method);
  Forward::Features outer(Method method);
  Forward::Features bare(Method method);
  Forward past_wrapper(bool split_graph);
  Forward through_wrapper(bool hidden_states);
  void forward_and_drop(const std::function<at::Tensor(const Forward&)>& loss);
  void enter();
  void record_entry();

  std::string name_;
  Decoder model_;
  std::unique_ptr<Wrapper> wrapper_;
  NativeProgram program_;
  Journal& journal_;
  std::function<void()> on_enter_ = [] {};
};

}  // namespace gradcheck::native
