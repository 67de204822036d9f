// SPDX-License-Identifier: Apache-2.0
#include "verdict/dump_distances.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "model/report.h"

namespace gradcheck {
namespace {

bool has_steps_between(const TensorView& a, const TensorView& b) {
  return a.shape == b.shape && a.dtype == b.dtype && is_measured(a.dtype);
}

void add(Difference& into, const Difference& other) {
  into.differing += other.differing;
  into.max_abs = std::max(into.max_abs, other.max_abs);
  into.nonfinite += other.nonfinite;
  into.sign_of_zero += other.sign_of_zero;
  into.nan_payload += other.nan_payload;
}

void add_steps(TensorDistance& result, const TensorView& a, const TensorView& b) {
  add(result.elements, difference(a.dtype, a.bytes, b.bytes));
  result.ulps.add(ulp_distance(a.dtype, a.bytes, b.bytes));
}

// Of a reference of zeros nothing but zeros is any distance away.
double share_of(const NormDistance& distance) {
  if (distance.gap == 0) return 0;
  const double share = distance.gap / distance.norm;
  return std::isfinite(distance.gap) && distance.norm > 0 ? share
                                                          : std::numeric_limits<double>::infinity();
}

void add_norm(TensorDistance& result, const TensorView& value, const TensorView& reference) {
  const bool possible =
      value.shape == reference.shape && is_measured(value.dtype) && is_measured(reference.dtype);
  if (!possible) {
    result.comparable = false;
    return;
  }
  result.norm =
      std::max(result.norm,
               share_of(norm_distance(value.dtype, value.bytes, reference.dtype, reference.bytes)));
}

template <typename T>
void keep_largest(std::optional<T>& into, T value) {
  into = std::max(into.value_or(value), value);
}

}  // namespace

TensorDistance distance_among(std::span<const TensorView* const> values) {
  TensorDistance result;
  for (const TensorView* value : values.subspan(1)) {
    if (has_steps_between(*value, *values.front())) {
      add_steps(result, *value, *values.front());
    } else {
      result.comparable = false;
    }
  }
  return result;
}

TensorDistance distance_to(const TensorView& reference, std::span<const TensorView* const> values,
                           bool with_norm) {
  TensorDistance result;
  for (const TensorView* value : values) {
    const bool steps = has_steps_between(*value, reference);
    if (steps) add_steps(result, *value, reference);
    if (with_norm) add_norm(result, *value, reference);
    result.comparable &= steps || with_norm;
  }
  return result;
}

bool same_bits(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes.size() == b.bytes.size() &&
         (a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

bool is_within(const TensorDistance& distance, const Tolerance& tolerance) {
  if (!distance.comparable) return false;
  switch (tolerance.kind) {
    case ToleranceKind::ulp:
      return distance.ulps.nonfinite == 0 && distance.ulps.largest <= tolerance.ulps;
    case ToleranceKind::norm:
      return distance.norm <= tolerance.norm;
    default:
      return false;
  }
}

void add_distance(DumpReading& reading, const TensorDistance& distance, DumpTensor row) {
  ++reading.differed;
  reading.differing_elements += distance.elements.differing;
  reading.sign_of_zero_elements += distance.elements.sign_of_zero;
  reading.nan_payload_elements += distance.elements.nan_payload;
  reading.nonfinite_elements += distance.elements.nonfinite;
  reading.sign_changes += distance.ulps.sign_changes;
  row.differing_elements = distance.elements.differing;
  const bool has_numbers =
      distance.comparable && distance.elements.differing > distance.elements.nonfinite;
  if (has_numbers) {
    row.max_ulps = distance.ulps.largest;
    row.max_abs = distance.elements.max_abs;
    keep_largest(reading.max_ulps, distance.ulps.largest);
  }
  if (row.norm) keep_largest(reading.max_norm, *row.norm);
  if (reading.rows.size() < kReportTensors) reading.rows.push_back(std::move(row));
}

void write_histogram(DumpReading& reading, const UlpDistance& total) {
  std::uint64_t from = 1;
  for (std::size_t i = 0; i < kUlpLimits.size(); ++i) {
    const bool last = i + 1 == kUlpLimits.size();
    UlpRow& row = reading.ulps.emplace_back();
    row.from = from;
    if (!last) row.to = kUlpLimits[i];
    row.elements = total.counts[i];
    from = kUlpLimits[i] + 1;
  }
}

}  // namespace gradcheck
