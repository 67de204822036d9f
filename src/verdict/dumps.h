// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/dumps.h"
#include "model/evidence_table.h"
#include "model/payload_view.h"
#include "model/plan.h"
#include "model/report.h"

namespace gradcheck {

// Tensors that somebody dumped, as the evidence of one step: at `reduced` what each rank held, at
// `local` what it had before the reduction, if that was dumped too. All elements are at hand.
struct DumpInput {
  const EvidenceTable& table;
  const PayloadViews& payloads;
  bool has_locals = false;
  Reduction reduction = Reduction::mean;  // of `local` to `reduced`
  double factor = 1;                      // of Reduction::factor
  std::optional<DType> wire_dtype = std::nullopt;
  const std::map<std::string, TensorView>* reference = nullptr;  // another run's tensors, by name
  Tolerance tolerance = {};                                      // towards the reference
  bool all_tensors = false;                                      // a row for every tensor
};

// Agreement of all ranks bit for bit, the audit of the reduction where locals are there, distance
// to the reference where there is one (verdicts.md §3 to §6). What a program did is not known, so
// that nothing is said of steps, stages, wrappers or the optimizer. Pure. Never `consistent` where
// nothing was compared or all that was is zero.
ArmReport judge_dumps(const DumpInput& input);

}  // namespace gradcheck
