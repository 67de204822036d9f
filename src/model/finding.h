// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradcheck {

// The tables of finding codes and causes: the only places that know the lists (verdicts.md §7, §8).

enum class Severity : std::uint8_t { note, warning, error };

struct CodeInfo {
  int code;  // 201 is written GC201
  Severity severity;
  std::string_view title;  // lower case, no full stop: "gradients were not reduced"
  std::string_view hint;   // one imperative sentence: what to do next
};

std::span<const CodeInfo> all_codes();                     // ascending
const CodeInfo* find_code(int code);                       // null if there is no such code
std::string code_text(int code);                           // "GC201"
std::optional<int> code_from_text(std::string_view text);  // of a code in the table

enum class Cause : std::uint8_t {
  bypass,
  stray_arm,
  no_sync_window,
  part_of_step,
  unused_parameter,
  stale_hook,
  ignored_parameter,
  grad_api,
  sum_not_mean,
  scaled,
  double_division,
  token_weighting,
  sub_group,
  lost_rank,
  rank_divergent_graph,
  shared_by_mistake,
  wire_dtype,
  overflow_in_reduction,
  scaler_mismatch,
  clip_before_reduce,
  start_mismatch,
  buffer_drift,
  not_stepped,
  nondeterministic,
  corrupted_rank,
  duplicate_data,
  carried_over,
  bf16_log_softmax,
  low_precision_logsumexp,
  low_precision_logits,
  temperature,
  dropout,
  position_ids,
  padding,
  shift,
  row_order,
  missing_as_zero,
  renormalised_sampling,
  packing,
  stale_weights,
  after_an_update,
  vocabulary_padding,
  expert_routing,
  quantised_rollout,
  retokenised,
  wrong_token,
  nonfinite_logits,
  unexplained,
};

struct CauseInfo {
  Cause cause;
  std::string_view name;
  std::string_view summary;  // one clause: "the loss was computed past the wrapper"
  std::string_view next;     // what to do, one imperative sentence
};

std::span<const CauseInfo> all_causes();
const CauseInfo& info_of(Cause cause);
std::string_view name_of(Cause cause);
std::optional<Cause> cause_from_name(std::string_view name);

enum class Confidence : std::uint8_t { possible, likely, certain };

std::string_view name_of(Severity severity);
std::string_view name_of(Confidence confidence);
std::optional<Severity> severity_from_name(std::string_view name);
std::optional<Confidence> confidence_from_name(std::string_view name);

// One thing wrong. Findings are ordered: severity, then code, then model.
struct Finding {
  int code = 0;
  Severity severity = Severity::error;
  std::string message;             // one sentence with the numbers in it
  std::string model;               // empty: the whole program
  std::int64_t step = 0;           // first step where it was seen
  std::vector<int> ranks;          // involved; empty: all or none in particular
  std::vector<std::string> names;  // first tensors, at most kFindingNames
  std::uint64_t count = 0;         // tensors in all
  std::string hint;
};

inline constexpr std::size_t kFindingNames = 8;

// With the code's own severity and hint. The code must be in the table.
Finding finding_of(int code, std::string message);

struct CauseClaim {
  Cause cause = Cause::unexplained;
  Confidence confidence = Confidence::possible;
  std::string model;
  std::string site;                   // FILE:LINE where known
  std::vector<std::string> evidence;  // for
  std::vector<std::string> against;
  std::string next;
};

}  // namespace gradcheck
