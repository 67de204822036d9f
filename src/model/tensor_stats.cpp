// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_stats.h"

namespace gradcheck {
namespace {

void append_hex(std::string& out, std::uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) out.push_back(kDigits[(value >> shift) & 0xF]);
}

}  // namespace

std::string to_hex(const Digest& digest) {
  std::string text;
  text.reserve(32);
  append_hex(text, digest.high);
  append_hex(text, digest.low);
  return text;
}

}  // namespace gradcheck
