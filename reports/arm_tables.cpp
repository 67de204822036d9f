// SPDX-License-Identifier: Apache-2.0
#include "reports/arm_tables.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reports/numbers.h"
#include "reports/text.h"
#include "reports/words.h"

namespace gradcheck {
namespace {

using enum Align;

std::string number(std::int64_t value) { return std::to_string(value); }

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "×"));
}

std::string max_cell(const TensorRow& row) {
  if (!row.max_abs) return "";
  const bool estimated = !row.max_abs_exact && *row.max_abs != 0;
  return (estimated ? "~" : "") + short_number(*row.max_abs);
}

std::string result_cell(const TensorRow& row) {
  std::string text = row.differed ? "differed" : row.wrong ? "wrong" : "";
  if (row.differed && row.wrong) text += ", wrong";
  if (row.sign_of_zero_only) text += ", sign of zero only";
  if (row.nan_payload_only) text += ", NaN payload only";
  return text;
}

// The first rung that did not pass says where the tensor stopped; "all" that none did.
std::string rung_cell(const TensorRow& row) {
  for (const auto& [rung, result] : row.rungs) {
    if (result == RungResult::fail) return printable(rung);
  }
  for (const auto& [rung, result] : row.rungs) {
    if (result == RungResult::inconclusive) return printable(rung) + " inconclusive";
  }
  return row.rungs.empty() ? "" : "all passed";
}

std::string weights_cell(const TensorRow& row) {
  std::vector<std::string> weights;
  for (const double weight : row.weights) weights.push_back(fmt::format("{:.3g}", weight));
  return joined(weights, " ");
}

std::string reduction_cell(const PlanLine& line) {
  if (line.reduction != Reduction::factor) return std::string(name_of(line.reduction));
  return fmt::format("factor {}", line.factor);
}

}  // namespace

Table models_table(const ArmReport& arm) {
  Table table{{{"model"},
               {"inventory", right},
               {"compared", right},
               {"differed", right},
               {"wrong", right},
               {"unrecorded", right}},
              {}};
  for (const ModelTotals& row : arm.models) {
    table.rows.push_back({name_or_unnamed(row.model), number(row.inventory), number(row.compared),
                          number(row.differed), number(row.wrong), number(row.unrecorded)});
  }
  return table;
}

Table steps_table(const ArmReport& arm) {
  Table table{{{"step", right},
               {"compared", right},
               {"differed", right},
               {"wrong", right},
               {"unrecorded", right},
               {"max", right}},
              {}};
  for (const StepTotals& row : arm.steps) {
    table.rows.push_back({number(row.step), number(row.compared), number(row.differed),
                          number(row.wrong), number(row.unrecorded), short_number(row.max_abs)});
  }
  return table;
}

Table rungs_table(const ArmReport& arm) {
  Table table{{{"rung"},
               {"pass", right},
               {"fail", right},
               {"inconclusive", right},
               {"n/a", right},
               {"reason"}},
              {}};
  for (const RungTotals& row : arm.rungs) {
    table.rows.push_back({printable(row.rung), number(row.pass), number(row.fail),
                          number(row.inconclusive), number(row.not_applicable),
                          printable(row.reason)});
  }
  return table;
}

Table tensors_table(const ArmReport& arm) {
  Table table{{{"name"},
               {"shape", right},
               {"dtype"},
               {"state"},
               {"step", right},
               {"ranks"},
               {"max", right},
               {"elements", right},
               {"bound", right},
               {"audit"},
               {"weights"},
               {"rung"},
               {"result"}},
              {}};
  for (const TensorRow& row : arm.tensors) {
    table.rows.push_back({tensor_text(arm, row), shape_text(row.shape), printable(row.dtype),
                          printable(row.state), arm.steps.size() > 1 ? number(row.step) : "",
                          printable(row.clusters), max_cell(row),
                          row.differing_elements > 0 ? std::to_string(row.differing_elements) : "",
                          row.bound_used ? share_number(*row.bound_used) : "", printable(row.audit),
                          weights_cell(row), rung_cell(row), result_cell(row)});
  }
  return table;
}

Table plan_table(const ArmReport& arm) {
  Table table{{{"name"},
               {"kind"},
               {"role"},
               {"reduction"},
               {"group"},
               {"wire"},
               {"buffers"},
               {"tied to"},
               {"says"}},
              {}};
  for (const PlanLine& line : arm.plan) {
    const bool buffer = line.kind == TensorKind::buffer;
    table.rows.push_back(
        {(arm.models.size() > 1 ? printable(line.model) + "/" : "") + name_or_unnamed(line.name),
         std::string(name_of(line.kind)), buffer ? "" : std::string(name_of(line.role)),
         buffer ? "" : reduction_cell(line), fmt::format("{{{}}}", fmt::join(line.group, ",")),
         line.wire_dtype ? std::string(name_of(*line.wire_dtype)) : "",
         buffer ? std::string(name_of(line.buffers)) : "", printable(line.tied_to),
         std::string(name_of(line.source))});
  }
  return table;
}

}  // namespace gradcheck
