// SPDX-License-Identifier: Apache-2.0
#include "model/dumps.h"

#include <fmt/format.h>

#include <array>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 3> kKinds = {"exact", "ulp", "norm"};

}  // namespace

std::string_view name_of(ToleranceKind kind) { return name_at(kKinds, kind); }

std::string text_of(const Tolerance& tolerance) {
  switch (tolerance.kind) {
    case ToleranceKind::ulp:
      return fmt::format("ulp={}", tolerance.ulps);
    case ToleranceKind::norm:
      return fmt::format("norm={}", tolerance.norm);
    default:
      return "exact";
  }
}

}  // namespace gradcheck
