// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/control.h"
#include "probes/native/fabric/fabric.h"
#include "probes/native/faults.h"
#include "probes/native/journal.h"
#include "probes/native/snapshot/recorder.h"
#include "probes/native/trainers/optimizer.h"
#include "probes/native/wrappers/policy.h"

namespace gradcheck::native {

// One model that a run trains, with its wrapper, optimizer and recorder. Everything it writes down
// carries the model's name. What it is given outlives it.
class Trainee {
 public:
  // `name` is that of the evidence; model and path are the program's. `fabric` may be null where
  // the program has no wrapper.
  Trainee(const std::string& name, const RunRecord& run, const Fabric* fabric, Journal& journal,
          const Faults& faults);

  Policy& policy() { return *policy_; }
  Recorder& recorder() { return *recorder_; }

  void start_step(std::int64_t step);
  void before_backward();  // records whether the coming backward will be reduced
  void after_backward();
  // As GradScaler.step and clip_grad_norm_ do it: gradients are divided by the scale and clipped; a
  // step with an infinite or NaN gradient is left out.
  void optimize(const NativeProgram& program);

 private:
  EventRecord event(EventType type) const;
  void on_inner_forward();
  bool unscale(double scale);  // whether all gradients are finite
  void clip(double max_norm);
  ModelTensors stepped() const;               // what the optimizer steps: all, or what it owns
  std::vector<at::Tensor> gradients() const;  // those that are there
  void corrupt_buffers(std::int64_t step);

  std::string name_;
  Journal& journal_;
  const Faults& faults_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<AdamW> optimizer_;
  std::int64_t buffers_seen_in_step_ = 0;  // step whose first forward has been recorded
};

}  // namespace gradcheck::native
