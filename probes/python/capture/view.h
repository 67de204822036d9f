// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/dtype.h"
#include "probes/python/capture/capture.h"

namespace gradcheck::capture {

// Digests and statistics are comparable between tensors of one form only.
struct Form {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  friend bool operator==(const Form&, const Form&) = default;
};

enum class Presence : std::uint8_t { absent, unreadable, readable };

// A run of elements `stride` elements apart.
struct Axis {
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

// A caller's tensor after all checks: every element is where the axes say, without overflow. Does
// not own the elements.
struct View {
  Presence presence = Presence::absent;
  Form form;
  const std::byte* data = nullptr;
  // Outermost first, at least one. Axes that one step through memory covers are one axis, so a
  // row-major tensor has a single axis with stride 1.
  std::vector<Axis> axes;
  std::uint64_t bytes = 0;  // of all elements, row-major

  bool is_contiguous() const { return axes.size() == 1 && axes[0].stride == 1; }
};

// Null is an absent tensor. A type whose element size is not known cannot be read.
// Errors: std::invalid_argument with a sentence.
View checked(const gradcheck_view* view);

}  // namespace gradcheck::capture
