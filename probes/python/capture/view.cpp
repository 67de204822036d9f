// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/view.h"

#include <span>
#include <stdexcept>

namespace gradcheck::capture {
namespace {

constexpr std::int32_t kMaxDimensions = 64;  // as in torch

[[noreturn]] void refuse(const char* why) { throw std::invalid_argument(why); }

DType dtype_of(std::int32_t value) {
  if (value < 0 || value > static_cast<std::int32_t>(DType::other)) refuse("dtype is unknown");
  return static_cast<DType>(value);
}

std::vector<std::int64_t> shape_of(const gradcheck_view& view) {
  if (view.ndim < 0 || view.ndim > kMaxDimensions) refuse("ndim is not between 0 and 64");
  if (view.ndim > 0 && view.sizes == nullptr) refuse("sizes are missing");
  return {view.sizes, view.sizes + view.ndim};
}

std::uint64_t bytes_of(const Form& form) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(form.dtype));
  bool overflows = false;
  bool is_empty = false;
  for (const std::int64_t size : form.shape) {
    if (size < 0) refuse("a size is negative");
    is_empty = is_empty || size == 0;
    overflows = __builtin_mul_overflow(bytes, size, &bytes) || overflows;
  }
  if (overflows && !is_empty) refuse("the sizes are too large");
  return is_empty ? 0 : static_cast<std::uint64_t>(bytes);
}

bool is_one_run(const Axis& outer, const Axis& inner) {
  std::int64_t step = 0;
  return !__builtin_mul_overflow(inner.size, inner.stride, &step) && outer.stride == step;
}

// Without axes of one element, whose strides mean nothing.
std::vector<Axis> axes_of(const Form& form, const std::int64_t* strides) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < form.shape.size(); ++i) {
    if (form.shape[i] == 1) continue;
    const Axis axis{form.shape[i], strides[i]};
    if (axis.stride < 0) refuse("a stride is negative");
    if (!axes.empty() && is_one_run(axes.back(), axis)) {
      axes.back() = {axes.back().size * axis.size, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.emplace_back();
  return axes;
}

// Offsets are computed in 64 bits while the tensor is walked.
void check_extent(std::span<const Axis> axes, std::size_t element_size) {
  std::int64_t last = 0;
  for (const Axis& axis : axes) {
    std::int64_t reach = 0;
    bool overflows = __builtin_mul_overflow(axis.size - 1, axis.stride, &reach);
    overflows = overflows || __builtin_add_overflow(last, reach, &last);
    if (overflows) refuse("the strides are too large");
  }
  if (__builtin_mul_overflow(last, static_cast<std::int64_t>(element_size), &last)) {
    refuse("the strides are too large");
  }
}

void place(View& view, const gradcheck_view& given) {
  view.data = static_cast<const std::byte*>(given.data);
  const auto elements = static_cast<std::int64_t>(view.bytes / size_of(view.form.dtype));
  if (given.strides == nullptr || elements == 0) {
    view.axes = {{elements, 1}};
    return;
  }
  view.axes = axes_of(view.form, given.strides);
  check_extent(view.axes, size_of(view.form.dtype));
}

bool holds_nothing(const Form& form) {
  for (const std::int64_t size : form.shape) {
    if (size == 0) return true;
  }
  return false;
}

}  // namespace

View checked(const gradcheck_view* given) {
  View view;
  if (given == nullptr) return view;
  view.form = {dtype_of(given->dtype), shape_of(*given)};
  view.bytes = bytes_of(view.form);
  const bool is_empty = holds_nothing(view.form);
  if (given->data == nullptr && given->unreadable == 0 && !is_empty) return view;
  const bool is_readable = given->unreadable == 0 && size_of(view.form.dtype) > 0;
  view.presence = is_readable ? Presence::readable : Presence::unreadable;
  if (is_readable) place(view, *given);
  return view;
}

}  // namespace gradcheck::capture
