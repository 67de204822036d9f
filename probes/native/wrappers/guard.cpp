// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/guard.h"

#include <array>
#include <stdexcept>

namespace gradcheck::native {
namespace {

struct Guard {
  std::string_view name;
  bool (*redirects)(const Seen& seen);
};

constexpr std::array<Guard, 6> kGuards = {{
    {"old", [](const Seen& seen) { return seen.is_zero3 || seen.is_fsdp; }},
    {"identity", [](const Seen& s) { return !s.same || s.is_zero3 || s.is_fsdp; }},
    {"final", [](const Seen& seen) { return !seen.same || seen.is_fsdp; }},
    {"always", [](const Seen&) { return true; }},
    {"never", [](const Seen&) { return false; }},
    {"identity_without_fsdp", [](const Seen& seen) { return !seen.same; }},
}};

}  // namespace

// fully_shard changes the module in place: nothing can be peeled off.
Seen seen_of(std::string_view wrapper_kind) {
  Seen seen;
  seen.same = wrapper_kind == "none" || wrapper_kind == "fsdp2";
  seen.is_zero3 = wrapper_kind == "zero3";
  seen.is_fsdp = wrapper_kind == "fsdp1" || wrapper_kind == "fsdp2";
  return seen;
}

bool redirects(std::string_view guard, const Seen& seen) {
  for (const Guard& row : kGuards) {
    if (row.name == guard) return row.redirects(seen);
  }
  throw std::invalid_argument("unknown guard " + std::string(guard));
}

std::string path_of(std::string_view guard, std::string_view wrapper_kind) {
  const bool through = redirects(guard, seen_of(wrapper_kind));
  if (wrapper_kind == "none") return "direct";
  return through ? "redirected" : "unwrapped";
}

std::string decision_text(std::string_view guard, std::string_view wrapper_kind) {
  const Seen seen = seen_of(wrapper_kind);
  std::string text = "guard " + std::string(guard);
  text += redirects(guard, seen) ? ": redirect" : ": direct";
  text += seen.same ? " (the model is the unwrapped one" : " (the model is not the unwrapped one";
  if (seen.is_zero3) text += ", ZeRO-3";
  if (seen.is_fsdp) text += ", FSDP";
  return text + ")";
}

}  // namespace gradcheck::native
