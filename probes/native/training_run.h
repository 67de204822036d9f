// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evidence/write/channel.h"
#include "model/control.h"
#include "probes/native/fabric/fabric.h"
#include "probes/native/faults.h"
#include "probes/native/journal.h"
#include "probes/native/trainee.h"
#include "probes/native/trainers/trainer.h"

namespace gradcheck::native {

// One rank's run of a program: rendezvous, construction, then steps of micro-steps, each step
// ending with the front's `go`. Whatever the program throws passes through.
class TrainingRun {
 public:
  TrainingRun(RunRecord run, Channel& channel, Journal& journal);
  void run();

 private:
  void rendezvous();
  void construct();
  void add_trainee(const std::string& name, const std::string& model, const std::string& path);
  void step(std::int64_t step);
  void micro_step(std::int64_t step, std::int64_t micro);
  void backward(const at::Tensor& loss);
  void optimize();
  void serve_front();
  std::optional<Want> next_want();
  void answer(const Want& want);
  std::int64_t micro_steps_of(std::int64_t step) const;
  bool runs_unsynchronised(std::int64_t micro) const;

  RunRecord run_;
  Channel& channel_;
  Journal& journal_;
  Faults faults_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::unique_ptr<Trainee>> trainees_;  // the policy, then the critic if there is one
  Stopwatch watch_;                                 // of the steps, without the wait for the front
  MicroLoss trainer_;
};

}  // namespace gradcheck::native
