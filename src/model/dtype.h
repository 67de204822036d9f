// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradcheck {

// Element types a tensor record may carry. The first four are measured in full; every other one
// gets a digest and an element count only. `other` is a type this version does not know.
enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  c64,
  c128,
  f8_e4m3fn,
  f8_e5m2,
  other,
};

// "f32", "bf16", …: the spelling used in evidence and reports.
std::string_view name_of(DType dtype);

// Unknown spellings become nullopt; the reader decides whether that is an error.
std::optional<DType> dtype_from_name(std::string_view name);

// "F32", "BF16", …: the spelling of safetensors files; empty where that format has none.
std::string_view safetensors_name_of(DType dtype);
std::optional<DType> dtype_from_safetensors_name(std::string_view name);

// Bytes per element; 0 for `other`.
std::size_t size_of(DType dtype);

bool is_measured(DType dtype);  // f64, f32, f16, bf16

// Unit roundoff u of round-to-nearest: f64 2^-53, f32 2^-24, f16 2^-11, bf16 2^-8.
// Requires: is_measured(dtype).
double unit_roundoff(DType dtype);

// Smallest positive subnormal number of the type. Requires: is_measured(dtype).
double smallest_subnormal(DType dtype);

}  // namespace gradcheck
