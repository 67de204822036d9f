// SPDX-License-Identifier: Apache-2.0
#include "probes/native/faults.h"

#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>

namespace gradcheck::native {
namespace {

[[noreturn]] void hang() {
  for (;;) pause();
}

void carry_out(const Fault& fault, int rank) {
  if (fault.kind == "kill") raise(SIGKILL);
  if (fault.kind == "hang") hang();
  if (fault.kind == "exit") _exit(0);
  if (fault.kind == "raise") {
    throw std::runtime_error("gradcheck fault: raised in " + fault.phase + " on rank " +
                             std::to_string(rank));
  }
}

}  // namespace

Faults::Faults(std::optional<Fault> fault, int rank) : fault_(std::move(fault)), rank_(rank) {
  if (fault_ && fault_->rank >= 0 && fault_->rank != rank) fault_.reset();
}

bool Faults::strikes_in(std::string_view phase) const { return fault_ && fault_->phase == phase; }

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

}  // namespace gradcheck::native
