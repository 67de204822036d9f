// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/finding.h"
#include "model/outcome.h"

namespace gradcheck {

// Log-probs of sampled tokens, new against old, and what they say (verdicts.md §9). delta is
// new − old, ratio is exp(delta); tokens outside the mask are counted and left out.

// How alike the two computations are meant to be; decides which differences are noise.
enum class Regime : std::uint8_t {
  same_kernels,  // R0: same kernels and shapes, no dropout: not one bit may differ
  same_stack,    // R1: same program, other batch, padding or chunk
  other_engine,  // R2: a rollout engine against a trainer
  quantised,     // R3: a rollout engine with quantised weights
};

std::string_view name_of(Regime regime);
std::optional<Regime> regime_from_name(std::string_view name);

// What one rank (or file) holds. Row r is tokens [offsets[r], offsets[r + 1]) of every array;
// optional arrays are empty or of full length. Values are as stored, widened to double.
struct LogProbShard {
  int rank = 0;
  std::string file;
  DType old_dtype = DType::f32;
  DType new_dtype = DType::f32;
  std::vector<std::size_t> offsets;
  std::vector<double> new_values;
  std::vector<double> old_values;
  std::vector<std::uint8_t> mask;  // 1: counts; empty: every token counts
  std::vector<double> rollout;     // of the engine that sampled, where old is something else
  std::vector<double> ref;         // of the reference model
  std::vector<double> entropy;     // of the new distribution, nats
  std::vector<double> new_repeat;  // a second forward of the same batch
  std::vector<std::int64_t> token_ids;
  std::vector<std::int64_t> micro_batches;  // of each row; empty: not named
  bool aliased = false;                     // old is new: their ratio is 1 by construction
  std::optional<std::int64_t> updates;      // optimizer steps between old and new; unset: not known
};

// What is declared of the run: turns a signature into a reading.
struct LogProbConditions {
  std::optional<Regime> regime;
  std::optional<DType> dtype;  // f32, f16 or bf16: what the forward computed in
  bool mixture_of_experts = false;
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> temperature;
  std::optional<std::int64_t> lag;  // optimizer steps the rollout is behind
  std::optional<double> clip_epsilon;

  bool has_sampling() const { return top_p || top_k || min_p; }
};

struct LogProbCounts {
  std::int64_t ranks = 0;
  std::int64_t sequences = 0;  // rows with a token that counts
  std::int64_t tokens = 0;     // inside the mask
  std::int64_t masked_out = 0;
  std::int64_t compared = 0;                          // inside the mask and finite on both sides
  std::int64_t identical = 0;                         // of these, equal bit for bit
  std::int64_t nonfinite_old = 0, nonfinite_new = 0;  // inside the mask
  std::int64_t nonfinite_masked_out = 0;              // of either side
  std::int64_t positive_old = 0, positive_new = 0;    // above 1e-6
  std::int64_t zero_old = 0, zero_new = 0;            // exactly 0.0
};

// Over all compared tokens of all ranks, sums before divisions; sequences weigh equally only where
// the name says so. Unset: not defined (fewer than two values, or nothing given).
struct LogProbStatistics {
  double mean = 0;      // mean delta
  double mean_abs = 0;  // mean |delta|
  double sd = 0;
  double kurtosis = 0;                            // of delta; 3 for a normal distribution
  double p50 = 0, p95 = 0, p99 = 0, max_abs = 0;  // of |delta|
  double mean_ratio = 0;                          // mean ratio − 1
  double mean_ratio_se = 0;                       // sequence-clustered standard error
  std::optional<double> z;                        // mean_ratio / mean_ratio_se
  double detectable_bias = 0;                     // 4 standard errors
  double k1 = 0;                                  // −mean delta: KL(old ‖ new)
  double k2 = 0;                                  // mean delta² / 2
  double k3 = 0;                                  // mean (ratio − 1 − delta): KL(old ‖ new)
  double k3_reversed = 0;                         // mean (1/ratio − 1 + delta)
  double js = 0;                                  // ½ k3 to the mixture from each side
  double chi2 = 0;                                // mean ratio² − 1
  double chi2_sequence = 0;                       // mean (product of ratios)² − 1
  double ess = 0;                                 // (Σ ratio)² / (n Σ ratio²), no clamp
  double outside_1 = 0, outside_5 = 0, outside_10 = 0, outside_20 = 0;  // share |ratio − 1| > x %
  std::optional<double> outside_clip;  // share outside 1 ± the given epsilon
  double sequence_mean_abs = 0;        // mean over sequences of their mean |delta|
  double geometric_p5 = 0, geometric_p50 = 0, geometric_p95 = 0;  // exp(mean delta) of a sequence
  double product_p5 = 0, product_p50 = 0, product_p95 = 0;        // exp(sum delta) of a sequence
  double probability_mean = 0, probability_max = 0, probability_sd = 0;  // |e^new − e^old| (verl)
  std::optional<double> pearson;                                         // of probabilities (verl)
  double tme = 0;                          // mean e^|delta| (NeMo-RL: token_mult_prob_error)
  double top_share = 0;                    // of Σ|delta|, held by the largest 1 % of tokens
  double surprisal = 0;                    // −mean old
  std::optional<double> entropy_excess;    // mean (−new − entropy), where entropy is given
  std::optional<double> entropy_excess_z;  // over its sequence-clustered standard error
  std::optional<double> repeat_mean_abs;   // mean |new_repeat − new|
};

// Tokens with something in common: a rank, a micro-batch, a range of old log-probs, a range of
// positions.
struct LogProbGroup {
  std::string label;
  std::int64_t tokens = 0;
  double mean = 0;
  double mean_abs = 0;
  double max_abs = 0;
  double mean_ratio = 0;  // mean ratio − 1
  double identical = 0;   // share
};

struct LogProbToken {
  int rank = 0;
  std::int64_t row = 0;  // inside its rank
  std::int64_t position = 0;
  std::optional<std::int64_t> token_id;
  double old_value = 0, new_value = 0, delta = 0;
  std::string flags;  // "first", "last", "old exactly 0"; comma separated
};

struct LogProbRow {
  int rank = 0;
  std::int64_t row = 0;
  std::int64_t tokens = 0;
  double mean = 0;
  double mean_abs = 0;
  double max_abs = 0;
};

// One test of docs/logp.md that saw something, or a declared condition that explains it.
struct LogProbSignature {
  std::string name;  // "grid", "shift", "row_order", …
  Confidence confidence = Confidence::possible;
  bool declared = false;  // explained by a declared condition: a reading, not a fault
  std::string text;
};

// Another pair of arrays read with the same formulas: rollout against old, reference against new.
struct LogProbPair {
  std::string name;  // "old - rollout"
  std::int64_t tokens = 0;
  double mean = 0;
  double mean_abs = 0;
  double max_abs = 0;
  double k3 = 0;
};

enum class BandLevel : std::uint8_t { pass, note, warning, fail };
std::string_view name_of(BandLevel level);
std::optional<BandLevel> band_level_from_name(std::string_view name);

// The limits in force, upper ends of their levels. Infinite: not limited by this number.
struct LogProbBand {
  std::string number = "mean_abs";  // what the first three limit: max_abs, mean_abs or k3
  double pass = 0, note = 0, warning = 0;
  std::optional<double> k3_pass, k3_warning;
  std::string source;  // "same_stack, bf16"
  BandLevel level = BandLevel::pass;
};

inline constexpr std::size_t kLogProbWorst = 8;       // worst tokens and rows
inline constexpr std::size_t kLogProbPositions = 32;  // ranges in the profile

struct LogProbReading {
  Outcome outcome = Outcome::inconclusive;
  std::string headline;  // one sentence
  std::string harm;      // "none", "small: …", "large: …"
  Regime regime = Regime::other_engine;
  std::string regime_source;  // given | inferred | assumed
  std::string regime_reason;  // one clause
  std::string dtype;          // the forward's, as given or assumed: "bf16"
  std::string dtype_source;   // given | assumed
  LogProbBand band;
  bool bitwise = false;            // every compared token is identical
  std::int64_t tokens_needed = 0;  // for a verdict; 0 where there were enough
  LogProbCounts counts;
  LogProbStatistics statistics;
  std::vector<LogProbGroup> by_rank, by_log_prob, by_position;
  std::vector<LogProbGroup> by_micro_batch;  // of all ranks, where the dump names them
  std::vector<LogProbToken> worst_tokens;
  std::vector<LogProbRow> worst_rows;
  std::vector<LogProbSignature> signatures;
  std::vector<LogProbPair> pairs;
  std::vector<Finding> findings;
  std::vector<CauseClaim> causes;  // the likeliest first
  std::vector<std::string> notes;
};

}  // namespace gradcheck
