// SPDX-License-Identifier: Apache-2.0
#include "model/outcome.h"

#include <algorithm>
#include <array>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 6> kOutcomes = {"consistent", "inconsistent", "inconclusive",
                                                       "raised",     "error",        "skipped"};
constexpr std::array<std::string_view, 4> kVerdicts = {"pass", "fail", "error", "skip"};
constexpr std::array<std::string_view, 4> kRungResults = {"pass", "fail", "inconclusive",
                                                          "not_applicable"};

int badness(Verdict verdict) {
  constexpr std::array<int, 4> kOrder = {1, 3, 2, 0};  // pass, fail, error, skip
  return kOrder[static_cast<std::size_t>(verdict)];
}

}  // namespace

std::string_view name_of(Outcome outcome) { return name_at(kOutcomes, outcome); }
std::string_view name_of(Verdict verdict) { return name_at(kVerdicts, verdict); }
std::string_view name_of(RungResult result) { return name_at(kRungResults, result); }

std::optional<Outcome> outcome_from_name(std::string_view name) {
  return find_name<Outcome>(kOutcomes, name);
}
std::optional<Verdict> verdict_from_name(std::string_view name) {
  return find_name<Verdict>(kVerdicts, name);
}
std::optional<RungResult> rung_result_from_name(std::string_view name) {
  return find_name<RungResult>(kRungResults, name);
}

Verdict worse(Verdict a, Verdict b) { return badness(a) >= badness(b) ? a : b; }

}  // namespace gradcheck
