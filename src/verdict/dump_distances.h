// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "model/dumps.h"
#include "model/payload_view.h"
#include "numeric/distance.h"
#include "numeric/ulps.h"

namespace gradcheck {

// How far some values of one tensor stand from one of them, or from a reference.
struct TensorDistance {
  bool comparable = true;  // equal shapes and, save for a norm, equal types with values
  Difference elements;
  UlpDistance ulps;
  double norm = 0;  // of the reference only: ‖a − reference‖₂ / ‖reference‖₂
};

// Of every value to the first.
TensorDistance distance_among(std::span<const TensorView* const> values);

// Of the value that stands furthest away. `with_norm` where nobody asks for steps of the type
// alone: types may differ then.
TensorDistance distance_to(const TensorView& reference, std::span<const TensorView* const> values,
                           bool with_norm);

bool same_bits(const TensorView& a, const TensorView& b);

// Positively: what is not known to be within is outside.
bool is_within(const TensorDistance& distance, const Tolerance& tolerance);

// Adds one tensor that differs to a reading, its row included.
void add_distance(DumpReading& reading, const TensorDistance& distance, DumpTensor row);

// Fills `ulps` of a reading from what was added up.
void write_histogram(DumpReading& reading, const UlpDistance& total);

}  // namespace gradcheck
