// SPDX-License-Identifier: Apache-2.0
#include "probes/native/faults.h"

#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/glob.h"
#include "model/native_parts.h"
#include "model/nearest.h"

namespace gradcheck::native {
namespace {

[[noreturn]] void hang() {
  for (;;) pause();
}

[[noreturn]] void carry_out(const Fault& fault, int rank) {
  if (fault.kind == "kill") raise(SIGKILL);
  if (fault.kind == "hang") hang();
  if (fault.kind == "exit") _exit(0);
  if (fault.kind == "raise") {
    throw std::runtime_error("gradcheck fault: raised in " + fault.phase + " on rank " +
                             std::to_string(rank));
  }
  throw std::invalid_argument("the lab cannot carry out fault \"" + fault.kind + "\"");
}

}  // namespace

Faults::Faults(std::optional<Fault> fault, int rank) : fault_(std::move(fault)), rank_(rank) {
  if (fault_ && fault_->rank >= 0 && fault_->rank != rank) fault_.reset();
}

bool Faults::strikes_in(std::string_view phase) const {
  return fault_ && needs_of_fault(fault_->kind) == FaultNeeds::phase && fault_->phase == phase;
}

void Faults::strike(std::string_view phase, std::int64_t step) const {
  if (strikes_in(phase) && fault_->step == step) carry_out(*fault_, rank_);
}

bool Faults::lasts(std::string_view kind, std::int64_t step) const {
  return fault_ && fault_->kind == kind && step >= fault_->step;
}

bool Faults::hides_local(std::string_view tensor, std::int64_t step) const {
  return lasts("skip_hook", step) && fault_->tensor == tensor;
}

bool Faults::hides_mark(Stage stage, std::int64_t step) const {
  return lasts("skip_mark", step) && fault_->tensor == name_of(stage);
}

bool Faults::skips_reduction(std::int64_t step) const { return lasts("skip_reduction", step); }

bool Faults::corrupts_reduction(std::int64_t step) const {
  return lasts("corrupt_reduction", step);
}

bool Faults::corrupts_shard(std::int64_t step) const { return lasts("corrupt_shard", step); }

bool Faults::overflows(std::int64_t step) const {
  return fault_ && fault_->kind == "overflow" && fault_->step == step;
}

bool Faults::keeps_gradients(std::int64_t step) const { return lasts("keep_gradients", step); }

bool Faults::corrupts_buffer(std::string_view tensor, std::int64_t step) const {
  return fault_ && fault_->kind == "corrupt_buffer" && fault_->step == step &&
         glob_match(fault_->tensor, tensor);
}

void check_target(const std::optional<Fault>& fault, const ModelTensors& parameters,
                  const ModelTensors& buffers) {
  if (!fault || needs_of_fault(fault->kind) != FaultNeeds::tensor) return;
  const bool wants_buffer = fault->kind == "corrupt_buffer";
  std::vector<std::string> names;
  for (const ModelTensor& tensor : wants_buffer ? buffers : parameters) {
    if (glob_match(fault->tensor, tensor.name)) return;
    names.push_back(tensor.name);
  }
  throw std::invalid_argument("fault \"" + fault->kind + "\": the model has no " +
                              (wants_buffer ? "buffer" : "parameter") + " \"" + fault->tensor +
                              "\"" + did_you_mean(fault->tensor, names));
}

}  // namespace gradcheck::native
