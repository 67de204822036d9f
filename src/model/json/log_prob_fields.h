// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>

#include "model/log_probs.h"

namespace gradcheck::report_json {

// The part of report-1 about log-probs (arms[].logp); see report_fields.h. Outcome, findings and
// causes stand with the arm.

template <typename T, typename Row>
concept is = std::same_as<std::remove_const_t<T>, Row>;

void fields(auto& v, is<LogProbCounts> auto& counts) {
  v("ranks", counts.ranks);
  v("sequences", counts.sequences);
  v("tokens", counts.tokens);
  v("masked_out", counts.masked_out);
  v("compared", counts.compared);
  v("identical", counts.identical);
  v("nonfinite_old", counts.nonfinite_old);
  v("nonfinite_new", counts.nonfinite_new);
  v("nonfinite_masked_out", counts.nonfinite_masked_out);
  v("positive_old", counts.positive_old);
  v("positive_new", counts.positive_new);
  v("zero_old", counts.zero_old);
  v("zero_new", counts.zero_new);
}

void fields(auto& v, is<LogProbStatistics> auto& s) {
  v("mean", s.mean);
  v("mean_abs", s.mean_abs);
  v("sd", s.sd);
  v("kurtosis", s.kurtosis);
  v("p50", s.p50);
  v("p95", s.p95);
  v("p99", s.p99);
  v("max_abs", s.max_abs);
  v("mean_ratio", s.mean_ratio);
  v("mean_ratio_se", s.mean_ratio_se);
  v("z", s.z);
  v("detectable_bias", s.detectable_bias);
  v("k1", s.k1);
  v("k2", s.k2);
  v("k3", s.k3);
  v("k3_reversed", s.k3_reversed);
  v("js", s.js);
  v("chi2", s.chi2);
  v("chi2_sequence", s.chi2_sequence);
  v("ess", s.ess);
  v("outside_1", s.outside_1);
  v("outside_5", s.outside_5);
  v("outside_10", s.outside_10);
  v("outside_20", s.outside_20);
  v("outside_clip", s.outside_clip);
  v("sequence_mean_abs", s.sequence_mean_abs);
  v("geometric_p5", s.geometric_p5);
  v("geometric_p50", s.geometric_p50);
  v("geometric_p95", s.geometric_p95);
  v("product_p5", s.product_p5);
  v("product_p50", s.product_p50);
  v("product_p95", s.product_p95);
  v("probability_mean", s.probability_mean);
  v("probability_max", s.probability_max);
  v("probability_sd", s.probability_sd);
  v("pearson", s.pearson);
  v("tme", s.tme);
  v("top_share", s.top_share);
  v("surprisal", s.surprisal);
  v("entropy_excess", s.entropy_excess);
  v("entropy_excess_z", s.entropy_excess_z);
  v("repeat_mean_abs", s.repeat_mean_abs);
}

void fields(auto& v, is<LogProbGroup> auto& group) {
  v("label", group.label);
  v("tokens", group.tokens);
  v("mean", group.mean);
  v("mean_abs", group.mean_abs);
  v("max_abs", group.max_abs);
  v("mean_ratio", group.mean_ratio);
  v("identical", group.identical);
}

void fields(auto& v, is<LogProbToken> auto& token) {
  v("rank", token.rank);
  v("row", token.row);
  v("position", token.position);
  v("token_id", token.token_id);
  v("old", token.old_value);
  v("new", token.new_value);
  v("delta", token.delta);
  v("flags", token.flags);
}

void fields(auto& v, is<LogProbRow> auto& row) {
  v("rank", row.rank);
  v("row", row.row);
  v("tokens", row.tokens);
  v("mean", row.mean);
  v("mean_abs", row.mean_abs);
  v("max_abs", row.max_abs);
}

void fields(auto& v, is<LogProbSignature> auto& signature) {
  v("name", signature.name);
  v("confidence", signature.confidence);
  v("declared", signature.declared);
  v("text", signature.text);
}

void fields(auto& v, is<LogProbPair> auto& pair) {
  v("name", pair.name);
  v("tokens", pair.tokens);
  v("mean", pair.mean);
  v("mean_abs", pair.mean_abs);
  v("max_abs", pair.max_abs);
  v("k3", pair.k3);
}

void fields(auto& v, is<LogProbBand> auto& band) {
  v("number", band.number);
  v("pass", band.pass);
  v("note", band.note);
  v("warning", band.warning);
  v("k3_pass", band.k3_pass);
  v("k3_warning", band.k3_warning);
  v("source", band.source);
  v("level", band.level);
}

void fields(auto& v, is<LogProbReading> auto& reading) {
  v("headline", reading.headline);
  v("harm", reading.harm);
  v("bitwise", reading.bitwise);
  v("regime", reading.regime);
  v("regime_source", reading.regime_source);
  v("regime_reason", reading.regime_reason);
  v("dtype", reading.dtype);
  v("dtype_source", reading.dtype_source);
  v("band", reading.band);
  v("tokens_needed", reading.tokens_needed);
  v("counts", reading.counts);
  v("statistics", reading.statistics);
  v("by_rank", reading.by_rank);
  v("by_log_prob", reading.by_log_prob);
  v("by_position", reading.by_position);
  v.since("by_micro_batch", reading.by_micro_batch);
  v("worst_tokens", reading.worst_tokens);
  v("worst_rows", reading.worst_rows);
  v("signatures", reading.signatures);
  v("pairs", reading.pairs);
  v("notes", reading.notes);
}

}  // namespace gradcheck::report_json
