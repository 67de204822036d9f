// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradcheck {

// What `gradcheck compare` found out about the elements of dumped tensors: the part of a report
// that other probes do not have. Counts are of elements, over all tensors that differ.

enum class ToleranceKind : std::uint8_t { exact, ulp, norm };

std::string_view name_of(ToleranceKind kind);

// How far a tensor may stand from the reference run's.
struct Tolerance {
  ToleranceKind kind = ToleranceKind::exact;
  std::uint64_t ulps = 0;  // of `ulp`: most numbers of its type between two elements
  double norm = 0;         // of `norm`: most of ‖a − reference‖₂ / ‖reference‖₂, per tensor
};

std::string text_of(const Tolerance& tolerance);  // as on the command line: "ulp=4"

// A file that was read. Several files of one rank are its shards.
struct DumpFile {
  std::string role;  // rank | local | reference
  int rank = 0;      // of `rank` and `local`
  std::string path;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;  // of their elements
};

struct UlpRow {
  std::uint64_t from = 0;           // least distance
  std::optional<std::uint64_t> to;  // largest, included; unset: none
  std::uint64_t elements = 0;
};

struct ClusterRow {
  std::string clusters;  // ranks that hold the same bits: "{0,1}{2,3}"
  std::uint64_t tensors = 0;
};

// One tensor that differs.
struct DumpTensor {
  std::string name;
  std::string clusters;
  std::uint64_t differing_elements = 0;
  std::optional<std::uint64_t> max_ulps;  // unset: type without values, or other shape or type
  std::optional<double> max_abs;
  std::optional<double> norm;  // against a reference: ‖a − reference‖₂ / ‖reference‖₂
  std::uint64_t nan_elements = 0, inf_elements = 0;  // of the rank that has most
};

// Ranks against each other, or each distinct value of theirs against the reference.
struct DumpReading {
  std::string against;    // ranks | reference
  std::string tolerance;  // "exact", "ulp=4", "norm=0.001"
  std::vector<DumpFile> files;
  std::uint64_t tensors = 0;  // compared
  std::uint64_t differed = 0;
  std::uint64_t outside = 0;             // of these, beyond the tolerance
  std::uint64_t differing_elements = 0;  // those of type with values and equal shapes
  std::uint64_t sign_of_zero_elements = 0;
  std::uint64_t nan_payload_elements = 0;
  std::uint64_t sign_changes = 0;
  std::uint64_t nonfinite_elements = 0;  // NaN or infinite on either side
  std::optional<std::uint64_t> max_ulps;
  std::optional<double> max_norm;  // of the reference only
  std::vector<UlpRow> ulps;
  std::vector<ClusterRow> clusters;
  std::vector<DumpTensor> rows;  // those that differ, at most kReportTensors
};

}  // namespace gradcheck
