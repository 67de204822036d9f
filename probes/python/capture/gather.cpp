// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/gather.h"

#include <algorithm>
#include <cstring>

namespace gradcheck::capture {
namespace {

// Column by column: several rows are read at once only where neighbours in a column lie closer
// together than neighbours in a row. A copy of constant size is a load and a store.
template <std::size_t Size>
void copy_elements(std::byte* to, const std::byte* from, const Axis& rows, const Axis& columns) {
  constexpr auto kSize = static_cast<std::int64_t>(Size);
  for (std::int64_t k = 0; k < columns.size; ++k) {
    for (std::int64_t i = 0; i < rows.size; ++i) {
      const std::int64_t offset = i * rows.stride + k * columns.stride;
      std::memcpy(to + (i * columns.size + k) * kSize, from + offset * kSize, Size);
    }
  }
}

void copy_patch(std::byte* to, const std::byte* from, const Axis& rows, const Axis& columns,
                std::size_t element_size) {
  if (rows.size == 1 && columns.stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(columns.size) * element_size);
    return;
  }
  switch (element_size) {
    case 1:
      return copy_elements<1>(to, from, rows, columns);
    case 2:
      return copy_elements<2>(to, from, rows, columns);
    case 4:
      return copy_elements<4>(to, from, rows, columns);
    case 8:
      return copy_elements<8>(to, from, rows, columns);
    default:
      return copy_elements<16>(to, from, rows, columns);
  }
}

}  // namespace

Gather::Gather(const View& view)
    : view_(view),
      element_size_(size_of(view.form.dtype)),
      index_(view.axes.size(), 0),
      position_(view.data) {}

void Gather::next(std::span<std::byte> to) {
  while (!to.empty()) {
    const auto [rows, columns] = next_patch(static_cast<std::int64_t>(to.size() / element_size_));
    copy_patch(to.data(), position_, rows, columns, element_size_);
    to = to.subspan(static_cast<std::size_t>(rows.size * columns.size) * element_size_);
    if (rows.size > 1) {
      advance(index_.size() - 2, rows.size);
    } else {
      advance(index_.size() - 1, columns.size);
    }
  }
}

// Whole rows of a transposed matrix together, so that a cache line that was fetched for one of them
// serves the others.
Gather::Patch Gather::next_patch(std::int64_t room) const {
  const Axis& inner = view_.axes.back();
  const std::int64_t run = std::min(room, inner.size - index_.back());
  Patch patch{{1, 0}, {run, inner.stride}};
  if (run < inner.size || index_.size() < 2) return patch;
  const std::size_t outer = index_.size() - 2;
  const Axis& axis = view_.axes[outer];
  if (axis.stride >= inner.stride) return patch;
  patch.rows = {std::min(room / inner.size, axis.size - index_[outer]), axis.stride};
  return patch;
}

// By no more than what is left of the axis.
void Gather::advance(std::size_t axis, std::int64_t count) {
  std::int64_t moved = count * view_.axes[axis].stride;
  index_[axis] += count;
  for (; axis > 0 && index_[axis] == view_.axes[axis].size; --axis) {
    moved += view_.axes[axis - 1].stride - view_.axes[axis].size * view_.axes[axis].stride;
    index_[axis] = 0;
    ++index_[axis - 1];
  }
  position_ += moved * static_cast<std::int64_t>(element_size_);
}

}  // namespace gradcheck::capture
