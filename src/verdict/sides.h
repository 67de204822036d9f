// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/report.h"
#include "verdict/findings.h"
#include "verdict/gradient.h"

namespace gradcheck {

// What is judged beside the gradients at `reduced`: parameters at `start` and `after`, gradients at
// `final`, buffers by their policy. Each adds its findings and returns its own counts.

SideTotals judge_parameters(const Context& context, const std::vector<GradientResult>& results,
                            FindingSet& findings);

// A factor between `reduced` and `final` is accepted where its maker was recorded (clipping,
// unscaling); an unseen one is GC204. Changes that are no factor are noted.
SideTotals judge_finals(const Context& context, const std::vector<GradientResult>& results,
                        FindingSet& findings, std::vector<std::string>& notes);

SideTotals judge_buffers(const Context& context, FindingSet& findings);

}  // namespace gradcheck
