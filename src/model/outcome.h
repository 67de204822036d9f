// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradcheck {

// What an arm's evidence showed.
enum class Outcome : std::uint8_t {
  consistent,
  inconsistent,
  inconclusive,
  raised,
  error,
  skipped,
};

// Outcome held against what the arm expects.
enum class Verdict : std::uint8_t { pass, fail, error, skip };

// One rung of the ladder, for one tensor or summed up.
enum class RungResult : std::uint8_t { pass, fail, inconclusive, not_applicable };

std::string_view name_of(Outcome outcome);
std::string_view name_of(Verdict verdict);
std::string_view name_of(RungResult result);
std::optional<Outcome> outcome_from_name(std::string_view name);
std::optional<Verdict> verdict_from_name(std::string_view name);
std::optional<RungResult> rung_result_from_name(std::string_view name);

// Of a scenario: its worst arm's, in the order fail, error, pass, skip.
Verdict worse(Verdict a, Verdict b);

// Process exit codes (design.md §6). Precedence usage, failed, could_not_judge, skipped, passed.
enum class ExitCode : int {
  passed = 0,
  failed = 1,
  usage = 2,
  could_not_judge = 3,
  skipped = 4,
};

}  // namespace gradcheck
