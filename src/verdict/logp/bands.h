// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/log_probs.h"

namespace gradcheck {

// The limits for a regime and the type the forward computed in (verdicts.md §9 for bf16,
// docs/logp.md for the rest).
LogProbBand band_for(Regime regime, DType dtype, bool mixture_of_experts);

// The band of the job's own noise, mean |delta| of a repeated forward, where it was measured and is
// noise at all: in its place of the same stack, and in place of a stricter one of another engine.
LogProbBand band_in_force(const LogProbBand& band, Regime regime, std::optional<double> noise);

// Where the numbers stand in the band; a NaN fails.
BandLevel level_in(const LogProbBand& band, double mean_abs, double max_abs, double k3);
BandLevel level_in(const LogProbBand& band, const LogProbStatistics& statistics);

// Which number put them there, and the limit it passed: "mean_abs 0.31 … (0.1)". Pass: the number
// that the band is about and its first limit.
struct BandReason {
  std::string number;
  double value = 0;
  double limit = 0;
};
BandReason reason_for(const LogProbBand& band, const LogProbStatistics& statistics);

struct ChosenRegime {
  Regime regime = Regime::other_engine;
  std::string source;  // given | inferred | assumed
  std::string reason;
};

// Given, or inferred from what only one regime can show, or the most lenient assumption.
// `rounding` is the mean |delta| that rounding one side to a low-precision grid would make; 0 where
// no side is on one.
ChosenRegime choose_regime(const LogProbConditions& conditions, const LogProbCounts& counts,
                           const LogProbStatistics& statistics, double rounding);

}  // namespace gradcheck
