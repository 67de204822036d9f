// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/bands.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradcheck {
namespace {

LogProbBand limits(const char* number, double pass, double note, double warning) {
  LogProbBand band;
  band.number = number;
  band.pass = pass;
  band.note = note;
  band.warning = warning;
  return band;
}

LogProbBand with_k3(LogProbBand band, double pass, double warning) {
  band.k3_pass = pass;
  band.k3_warning = warning;
  return band;
}

LogProbBand same_stack(DType dtype) {
  if (dtype == DType::f32) return limits("max_abs", 1e-4, 1e-4, 1e-3);
  return limits("mean_abs", 2e-3, 5e-3, 1e-2);  // f16
}

LogProbBand other_engine(DType dtype) {
  if (dtype == DType::f32) return limits("mean_abs", 2e-3, 5e-3, 1e-2);
  return with_k3(limits("mean_abs", 3e-3, 6e-3, 1.5e-2), 3e-5, 6e-4);  // f16
}

// Of a bfloat16 forward, dense or with experts, whose routers flip: one row laxer.
LogProbBand bfloat16(bool mixture_of_experts) {
  if (mixture_of_experts) return with_k3(limits("mean_abs", 0.05, 0.1, 0.2), 5e-3, 1.5e-2);
  return with_k3(limits("mean_abs", 0.03, 0.05, 0.1), 3e-3, 1e-2);
}

LogProbBand unnamed_band(Regime regime, DType dtype, bool mixture_of_experts) {
  if (regime == Regime::same_kernels) return limits("max_abs", 0, 1e-6, 1e-5);
  if (regime == Regime::quantised) return limits("k3", 4e-3, 1e-2, 5e-2);
  if (dtype == DType::bf16) return bfloat16(mixture_of_experts);
  return regime == Regime::same_stack ? same_stack(dtype) : other_engine(dtype);
}

BandLevel level_of(double number, const LogProbBand& band) {
  if (number <= band.pass) return BandLevel::pass;
  if (number <= band.note) return BandLevel::note;
  return number <= band.warning ? BandLevel::warning : BandLevel::fail;
}

// k3 above its pass is a note; far above, a warning. The mean alone fails an arm.
BandLevel level_of_k3(double k3, const LogProbBand& band) {
  if (!band.k3_pass || k3 <= *band.k3_pass) return BandLevel::pass;
  return k3 <= *band.k3_warning ? BandLevel::note : BandLevel::warning;
}

constexpr double kBatchShapeOfF32 = 1e-4;  // max |delta|: fp32 with other chunks (trlx 508: 9.3e-5)
constexpr double kRoundingSlack = 3;       // kernels that round more than once
constexpr double kIdenticalShare = 0.05;
constexpr double kMostNoise = 0.05;  // of a repeat; more is dropout, not noise

}  // namespace

LogProbBand band_for(Regime regime, DType dtype, bool mixture_of_experts) {
  LogProbBand band = unnamed_band(regime, dtype, mixture_of_experts);
  band.source = name_of(regime);
  const bool depends = regime == Regime::same_stack || regime == Regime::other_engine;
  if (depends) band.source += fmt::format(", {}", name_of(dtype));
  if (depends && mixture_of_experts) band.source += ", mixture of experts";
  return band;
}

LogProbBand band_in_force(const LogProbBand& band, Regime regime, std::optional<double> noise) {
  const bool measured = noise && *noise > 0 && *noise <= kMostNoise;
  if (!measured || regime == Regime::same_kernels || band.number == "k3") return band;
  LogProbBand own = limits("mean_abs", 2 * *noise, 3 * *noise, 5 * *noise);
  own.source = fmt::format("the noise of a repeat ({:.2g})", *noise);
  if (regime == Regime::same_stack) return own;
  return band.number == "mean_abs" && band.pass < own.pass ? own : band;
}

BandLevel level_in(const LogProbBand& band, double mean_abs, double max_abs, double k3) {
  if (band.number == "k3") return level_of(k3, band);
  const BandLevel level = level_of(band.number == "max_abs" ? max_abs : mean_abs, band);
  return std::max(level, level_of_k3(k3, band));
}

BandLevel level_in(const LogProbBand& band, const LogProbStatistics& statistics) {
  return level_in(band, statistics.mean_abs, statistics.max_abs, statistics.k3);
}

BandReason reason_for(const LogProbBand& band, const LogProbStatistics& statistics) {
  const BandLevel level = level_in(band, statistics);
  BandReason reason{band.number, statistics.mean_abs, band.pass};
  if (band.number == "k3") reason.value = statistics.k3;
  if (band.number == "max_abs") reason.value = statistics.max_abs;
  if (band.k3_pass && level_of(reason.value, band) < level) {
    const double limit = level == BandLevel::note ? *band.k3_pass : *band.k3_warning;
    return {"k3", statistics.k3, limit};
  }
  if (level == BandLevel::warning) reason.limit = band.note;
  if (level == BandLevel::fail) reason.limit = band.warning;
  return reason;
}

ChosenRegime choose_regime(const LogProbConditions& conditions, const LogProbCounts& counts,
                           const LogProbStatistics& statistics, double rounding) {
  if (conditions.regime) return {*conditions.regime, "given", "stated on input"};
  if (counts.compared > 0 && counts.identical == counts.compared) {
    return {Regime::same_kernels, "inferred", "every token is equal bit for bit"};
  }
  if (rounding > 0 && statistics.mean_abs <= kRoundingSlack * rounding) {
    return {Regime::same_stack, "inferred", "rounding one side explains the difference"};
  }
  if (statistics.max_abs <= kBatchShapeOfF32) {
    return {Regime::same_stack, "inferred", "no token differs by more than 1e-4"};
  }
  // Exact zeros on both sides are equal whatever made them.
  const auto equal = std::max<std::int64_t>(0, counts.identical - counts.zero_new);
  const auto share = static_cast<double>(equal) / static_cast<double>(counts.compared);
  if (rounding == 0 && share >= kIdenticalShare) {
    return {Regime::same_stack, "inferred",
            fmt::format("{:.0f} % of the tokens are equal bit for bit", 100 * share)};
  }
  return {Regime::other_engine, "assumed", "not stated; nothing shows that one program made both"};
}

}  // namespace gradcheck
