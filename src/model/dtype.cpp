// SPDX-License-Identifier: Apache-2.0
#include "model/dtype.h"

#include <array>
#include <cmath>

namespace gradcheck {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::size_t size;
  int mantissa_bits;  // explicit bits; 0 where the type is not measured
  int min_exponent;   // exponent of the smallest subnormal
};

constexpr std::array<DTypeInfo, 15> kDTypes = {{
    {DType::f64, "f64", 8, 52, -1074},
    {DType::f32, "f32", 4, 23, -149},
    {DType::f16, "f16", 2, 10, -24},
    {DType::bf16, "bf16", 2, 7, -133},
    {DType::i64, "i64", 8, 0, 0},
    {DType::i32, "i32", 4, 0, 0},
    {DType::i16, "i16", 2, 0, 0},
    {DType::i8, "i8", 1, 0, 0},
    {DType::u8, "u8", 1, 0, 0},
    {DType::boolean, "bool", 1, 0, 0},
    {DType::c64, "c64", 8, 0, 0},
    {DType::c128, "c128", 16, 0, 0},
    {DType::f8_e4m3fn, "f8_e4m3fn", 1, 0, 0},
    {DType::f8_e5m2, "f8_e5m2", 1, 0, 0},
    {DType::other, "other", 0, 0, 0},
}};

const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view name_of(DType dtype) { return info(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& entry : kDTypes) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

std::size_t size_of(DType dtype) { return info(dtype).size; }

bool is_measured(DType dtype) { return info(dtype).mantissa_bits > 0; }

double unit_roundoff(DType dtype) { return std::ldexp(1.0, -(info(dtype).mantissa_bits + 1)); }

double smallest_subnormal(DType dtype) { return std::ldexp(1.0, info(dtype).min_exponent); }

}  // namespace gradcheck
