// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "evidence/read/reader.h"
#include "launch/zygote.h"
#include "model/scenario.h"
#include "run/interrupt.h"
#include "run/payloads.h"

namespace gradcheck {

struct NativeArmInput {
  const Scenario& scenario;  // overrides applied
  const Arm& arm;
  std::string run_id;
  std::string parent_directory;  // the run directory is made in it
  const InterruptWatch& interrupt;
  std::function<void(const std::string&)> progress;  // one short line; may be empty
};

// All that the ranks of one arm left behind: the table, and the payload files that views point
// into. Movable; the run directory is gone already (mapped files outlive their names).
struct ArmEvidence {
  EvidenceReader reader;
  Payloads payloads;
};

// Forks the arm's ranks from `zygote`, hands each its program, gathers their evidence step by step,
// asks for payloads at the end of each step, keeps the deadlines and reaps every rank, whatever
// happens. What went wrong with a rank is evidence, not an error.
// Errors: InfrastructureError when the zygote fails; Interrupted.
ArmEvidence run_native_arm(Zygote& zygote, const NativeArmInput& input);

}  // namespace gradcheck
