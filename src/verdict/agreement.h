// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/evidence_table.h"
#include "model/payload_view.h"

namespace gradcheck {

// How the ranks of a group stand to each other in one row of the table. No tolerance: two ranks
// agree if dtype, shape and digest are equal, or the tensor is absent on both.
struct Agreement {
  std::vector<std::vector<int>> clusters;  // ranks that agree, by first rank; recorded ranks only
  std::vector<int> present;
  std::vector<int> absent;
  std::vector<int> unrecorded;  // said nothing, or the storage was unreadable
  bool shapes_equal = true;     // dtype and shape of the present ones

  bool complete() const { return unrecorded.empty(); }
  bool equal() const { return clusters.size() <= 1; }
};

Agreement compare_ranks(std::span<const Entry> entries, std::span<const int> group);

std::string cluster_text(const Agreement& agreement);  // "{0,1}{2,3}"

// Ranks outside the largest cluster; every rank where no cluster is the largest.
std::vector<int> minority(const Agreement& agreement);

// The distance between ranks that differ.
struct Spread {
  std::optional<double> max_abs;  // largest |a − b| over pairs of ranks and elements finite on both
  bool exact = false;             // false: estimated from sketches
  std::uint64_t differing_elements = 0;  // 0: not known
  bool sign_of_zero_only = false;
  bool nan_payload_only = false;
};

// Exact where every present rank's elements are at hand, otherwise an estimate.
Spread spread(const EvidenceTable& table, const PayloadViews& payloads, const RowKey& key,
              const Agreement& agreement);

// ‖a − b‖₂ estimated from sketches; nothing where one of them has none.
std::optional<double> sketch_distance(const EvidenceTable& table, const Entry& a, const Entry& b);

// The elements of one tensor at one moment on one rank; null if they are not at hand.
const TensorView* find_view(const EvidenceTable& table, const PayloadViews& payloads,
                            const RowKey& key, int rank);

}  // namespace gradcheck
