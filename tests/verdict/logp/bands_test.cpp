// SPDX-License-Identifier: Apache-2.0
#include "verdict/logp/bands.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradcheck {
namespace {

LogProbStatistics with(double mean_abs, double k3 = 0, double max_abs = 0) {
  LogProbStatistics statistics;
  statistics.mean_abs = mean_abs;
  statistics.k3 = k3;
  statistics.max_abs = max_abs;
  return statistics;
}

TEST(Bands, OfBf16AreThoseOfTheContract) {
  for (const Regime regime : {Regime::same_stack, Regime::other_engine}) {
    const LogProbBand band = band_for(regime, DType::bf16, false);
    EXPECT_EQ(level_in(band, with(0.03, 3e-3)), BandLevel::pass);
    EXPECT_EQ(level_in(band, with(0.03, 4e-3)), BandLevel::note);
    EXPECT_EQ(level_in(band, with(0.05)), BandLevel::note);
    EXPECT_EQ(level_in(band, with(0.1)), BandLevel::warning);
    EXPECT_EQ(level_in(band, with(0.11)), BandLevel::fail);
  }
}

TEST(Bands, AreOneRowLaxerForExperts) {
  const LogProbBand dense = band_for(Regime::other_engine, DType::bf16, false);
  const LogProbBand experts = band_for(Regime::other_engine, DType::bf16, true);
  EXPECT_EQ(experts.pass, dense.note);
  EXPECT_EQ(experts.note, dense.warning);
}

TEST(Bands, OfTheSameKernelsAllowNoBit) {
  const LogProbBand band = band_for(Regime::same_kernels, DType::bf16, false);
  EXPECT_EQ(level_in(band, with(0, 0, 0)), BandLevel::pass);
  EXPECT_EQ(level_in(band, with(0, 0, 1e-9)), BandLevel::note);
  EXPECT_EQ(level_in(band, with(0, 0, 2e-5)), BandLevel::fail);
}

TEST(Bands, NaNNeverPasses) {
  for (const Regime regime : {Regime::same_kernels, Regime::same_stack, Regime::quantised}) {
    const LogProbBand band = band_for(regime, DType::bf16, false);
    EXPECT_EQ(level_in(band, with(NAN, NAN, NAN)), BandLevel::fail);
  }
}

TEST(Bands, TheReasonNamesTheNumberThatPassedItsLimit) {
  const LogProbBand band = band_for(Regime::other_engine, DType::bf16, false);
  EXPECT_EQ(reason_for(band, with(0.2)).number, "mean_abs");
  EXPECT_EQ(reason_for(band, with(0.2)).limit, 0.1);
  EXPECT_EQ(reason_for(band, with(0.01, 0.02)).number, "k3");
  EXPECT_EQ(reason_for(band, with(0.01, 0.02)).limit, 1e-2);
}

TEST(Bands, MeasuredNoiseTakesThePlaceOfTheSameStacks) {
  const LogProbBand band = band_for(Regime::same_stack, DType::bf16, false);
  EXPECT_EQ(band_in_force(band, Regime::same_stack, 1e-3).pass, 2e-3);
  EXPECT_EQ(band_in_force(band, Regime::same_stack, 0.0).pass, band.pass);
  EXPECT_EQ(band_in_force(band, Regime::same_stack, 0.3).pass, band.pass);
  EXPECT_EQ(band_in_force(band, Regime::other_engine, 1e-3).pass, band.pass);
}

TEST(Regimes, AreGivenInferredOrAssumed) {
  LogProbConditions given;
  given.regime = Regime::quantised;
  LogProbCounts counts;
  counts.compared = 100;
  EXPECT_EQ(choose_regime(given, counts, with(0.01), 0).source, "given");
  EXPECT_EQ(choose_regime({}, counts, with(0.01, 0, 0.1), 0).source, "assumed");
  EXPECT_EQ(choose_regime({}, counts, with(1e-6, 0, 1e-5), 0).regime, Regime::same_stack);
  EXPECT_EQ(choose_regime({}, counts, with(0.01, 0, 0.1), 0.005).regime, Regime::same_stack);
  counts.identical = 20;
  EXPECT_EQ(choose_regime({}, counts, with(0.01, 0, 0.1), 0).regime, Regime::same_stack);
  counts.identical = 100;
  EXPECT_EQ(choose_regime({}, counts, with(0), 0).regime, Regime::same_kernels);
}

}  // namespace
}  // namespace gradcheck
