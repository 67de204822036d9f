// SPDX-License-Identifier: Apache-2.0
#include "run/reference_weights.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradcheck {

// Rows come in the order of steps, so that a later step overwrites an earlier one.
FinalWeights final_weights(const EvidenceTable& table) {
  FinalWeights weights;
  for (const RowKey& key : table.rows()) {
    const bool counts = key.kind == TensorKind::param && key.stage == Stage::after;
    const auto entries = table.entries(key);
    if (!counts || entries.empty() || !entries[0].recorded) continue;
    const std::pair name(std::string(table.text(key.model)), std::string(table.text(key.name)));
    weights[name] = entries[0].digest;
  }
  return weights;
}

void compare_weights(const FinalWeights& own,
                     const std::pair<const std::string, FinalWeights>& reference,
                     ArmReport& report) {
  const auto& [arm, theirs] = reference;
  ReferenceWeights result{arm, 0, static_cast<std::int64_t>(theirs.size())};
  for (const auto& [name, digest] : own) {
    const auto found = theirs.find(name);
    if (found == theirs.end()) ++result.compared;
    if (found != theirs.end() && found->second == digest) ++result.equal;
  }
  report.notes.push_back(
      fmt::format("rank 0 ends with {} of the {} weights that rank 0 of {} has, bit for bit",
                  result.equal, result.compared, arm));
  report.reference_weights = std::move(result);
}

}  // namespace gradcheck
