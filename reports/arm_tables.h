// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/report.h"
#include "reports/table.h"

namespace gradcheck {

// The row arrays of one arm as tables of printable text.

Table models_table(const ArmReport& arm);
Table steps_table(const ArmReport& arm);
Table rungs_table(const ArmReport& arm);
Table tensors_table(const ArmReport& arm);
Table plan_table(const ArmReport& arm);

}  // namespace gradcheck
