// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "model/evidence_table.h"

namespace gradcheck {

// Digest of each batch that entered a model, by (rank, step, micro-step).
using BatchDigests = std::map<std::tuple<int, std::int64_t, std::int64_t>, std::string>;

BatchDigests batches_of(const EvidenceTable& table);

// Arms of a scenario run the same step: same seed, same data. A sentence that says where the
// batches of `arm` part from those of an earlier arm, or nothing. Batches that only one of them
// reached are no difference (a rank may have died).
std::optional<std::string> batches_differ(const BatchDigests& earlier, const BatchDigests& arm);

}  // namespace gradcheck
