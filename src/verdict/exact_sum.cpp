// SPDX-License-Identifier: Apache-2.0
#include "verdict/exact_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numeric/distance.h"

namespace gradcheck {
namespace {

constexpr std::size_t kChunk = 4096;  // elements

using Views = std::vector<const TensorView*>;

bool is_present(const Part& part) { return part.entry->state != TensorState::absent; }

bool has_elements(const Part& part, const Entry& like) {
  return part.view != nullptr && part.view->dtype == like.dtype && part.entry->n == like.n &&
         part.view->bytes.size() == like.n * size_of(like.dtype);
}

// To the nearest value of a type narrower than float, ties to even.
double narrowed(DType dtype, double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| < 2^exponent, so its unit in the last place is u·2^exponent
  const double unit =
      std::max(std::ldexp(unit_roundoff(dtype), exponent), smallest_subnormal(dtype));
  const double rounded = std::nearbyint(x / unit) * unit;
  const double limit = dtype == DType::f16 ? 0x1p16 : 0x1p128;
  if (std::abs(rounded) < limit) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), x);
}

// Half types are added as floats and then rounded, on processors and accelerators alike.
double add(DType dtype, double a, double b) {
  if (dtype == DType::f64) return a + b;
  const float sum = static_cast<float>(a) + static_cast<float>(b);
  return dtype == DType::f32 ? sum : narrowed(dtype, sum);
}

bool same_bits(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool is_sum_of(const TensorView& value, const Views& parts, std::size_t first, std::size_t size) {
  std::array<double, kChunk> sums, buffer;
  const std::span<double> sum(sums.data(), size), chunk(buffer.data(), size);
  to_double(parts.front()->dtype, parts.front()->bytes, first, sum);
  for (std::size_t part = 1; part < parts.size(); ++part) {
    to_double(parts[part]->dtype, parts[part]->bytes, first, chunk);
    for (std::size_t i = 0; i < size; ++i) sum[i] = add(value.dtype, sum[i], chunk[i]);
  }
  to_double(value.dtype, value.bytes, first, chunk);
  return std::equal(sum.begin(), sum.end(), chunk.begin(), same_bits);
}

}  // namespace

std::optional<bool> is_exact_sum(const AuditQuestion& question) {
  const Entry& stored = *question.value.entry;
  if (!is_measured(stored.dtype) || !has_elements(question.value, stored)) return std::nullopt;
  Views parts;
  for (const Part& part : question.parts) {
    if (!is_present(part)) continue;
    if (!has_elements(part, stored)) return std::nullopt;
    parts.push_back(part.view);
  }
  if (parts.empty()) return std::nullopt;
  for (std::size_t first = 0; first < stored.n; first += kChunk) {
    const std::size_t size = std::min<std::size_t>(kChunk, stored.n - first);
    if (!is_sum_of(*question.value.view, parts, first, size)) return false;
  }
  return true;
}

}  // namespace gradcheck
