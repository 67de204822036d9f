// SPDX-License-Identifier: Apache-2.0
#include "model/log_probs.h"

#include <array>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 4> kRegimes = {"same_kernels", "same_stack", "other_engine",
                                                      "quantised"};
constexpr std::array<std::string_view, 4> kLevels = {"pass", "note", "warning", "fail"};

}  // namespace

std::string_view name_of(Regime regime) { return name_at(kRegimes, regime); }
std::string_view name_of(BandLevel level) { return name_at(kLevels, level); }

std::optional<Regime> regime_from_name(std::string_view name) {
  return find_name<Regime>(kRegimes, name);
}

std::optional<BandLevel> band_level_from_name(std::string_view name) {
  return find_name<BandLevel>(kLevels, name);
}

}  // namespace gradcheck
