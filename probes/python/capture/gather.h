// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "probes/python/capture/view.h"

namespace gradcheck::capture {

// Reads a tensor's elements in row-major logical order, wherever they lie. The view must outlive
// it. Requires: the view is readable.
class Gather {
 public:
  explicit Gather(const View& view);

  // Fills `to` with the elements that follow. Requires: whole elements, not more than are left.
  void next(std::span<std::byte> to);

 private:
  // Part of one row (of the innermost axis), or several whole rows.
  struct Patch {
    Axis rows;
    Axis columns;
  };

  Patch next_patch(std::int64_t room) const;
  void advance(std::size_t axis, std::int64_t count);

  const View& view_;
  std::size_t element_size_;
  std::vector<std::int64_t> index_;  // by axis, of the next element
  const std::byte* position_;        // of the next element
};

}  // namespace gradcheck::capture
