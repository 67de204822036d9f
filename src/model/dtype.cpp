// SPDX-License-Identifier: Apache-2.0
#include "model/dtype.h"

#include <array>
#include <cmath>

namespace gradcheck {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::string_view safetensors;
  std::size_t size;
  int mantissa_bits;  // explicit bits; 0 where the type is not measured
  int min_exponent;   // exponent of the smallest subnormal
};

constexpr std::array<DTypeInfo, 15> kDTypes = {{
    {DType::f64, "f64", "F64", 8, 52, -1074},
    {DType::f32, "f32", "F32", 4, 23, -149},
    {DType::f16, "f16", "F16", 2, 10, -24},
    {DType::bf16, "bf16", "BF16", 2, 7, -133},
    {DType::i64, "i64", "I64", 8, 0, 0},
    {DType::i32, "i32", "I32", 4, 0, 0},
    {DType::i16, "i16", "I16", 2, 0, 0},
    {DType::i8, "i8", "I8", 1, 0, 0},
    {DType::u8, "u8", "U8", 1, 0, 0},
    {DType::boolean, "bool", "BOOL", 1, 0, 0},
    {DType::c64, "c64", "C64", 8, 0, 0},
    {DType::c128, "c128", "", 16, 0, 0},
    {DType::f8_e4m3fn, "f8_e4m3fn", "F8_E4M3", 1, 0, 0},
    {DType::f8_e5m2, "f8_e5m2", "F8_E5M2", 1, 0, 0},
    {DType::other, "other", "", 0, 0, 0},
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

std::string_view safetensors_name_of(DType dtype) { return info(dtype).safetensors; }

std::optional<DType> dtype_from_safetensors_name(std::string_view name) {
  for (const DTypeInfo& entry : kDTypes) {
    if (!name.empty() && entry.safetensors == name) return entry.dtype;
  }
  return std::nullopt;
}

std::size_t size_of(DType dtype) { return info(dtype).size; }

bool is_measured(DType dtype) { return info(dtype).mantissa_bits > 0; }

double unit_roundoff(DType dtype) { return std::ldexp(1.0, -(info(dtype).mantissa_bits + 1)); }

double smallest_subnormal(DType dtype) { return std::ldexp(1.0, info(dtype).min_exponent); }

}  // namespace gradcheck
