// SPDX-License-Identifier: Apache-2.0
#include "run/batches.h"

#include <fmt/format.h>

namespace gradcheck {

BatchDigests batches_of(const EvidenceTable& table) {
  BatchDigests digests;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const EventRecord& event : table.rank(rank).events) {
      if (event.type == EventType::batch) digests[{rank, event.step, event.micro}] = event.digest;
    }
  }
  return digests;
}

std::optional<std::string> batches_differ(const BatchDigests& earlier, const BatchDigests& arm) {
  for (const auto& [moment, digest] : arm) {
    const auto other = earlier.find(moment);
    if (other == earlier.end() || other->second == digest) continue;
    const auto& [rank, step, micro] = moment;
    return fmt::format(
        "rank {} had another batch than in the arm before, at step {}, micro-step {}", rank, step,
        micro);
  }
  return std::nullopt;
}

}  // namespace gradcheck
