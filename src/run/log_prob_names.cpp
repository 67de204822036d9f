// SPDX-License-Identifier: Apache-2.0
#include "run/log_prob_names.h"

#include "model/errors.h"

namespace gradcheck {
namespace {

constexpr LogProbNames kNames[] = {
    {"gradcheck", "old", "new", "mask", ""},
    {"minimind", "old_resp_logp", "mb_resp_logp", "resp_policy_mask", ""},
    {"verl", "rollout_log_probs", "old_log_probs", "response_mask", ""},
    {"TRL", "sampling_per_token_logps", "old_per_token_logps", "completion_mask", "tool_mask"},
    {"OpenRLHF", "rollout_log_probs", "action_log_probs", "action_mask", ""},
    {"slime", "rollout_log_probs", "log_probs", "loss_masks", ""},
    {"NeMo-RL", "generation_logprobs", "prev_logprobs", "token_mask", "sample_mask"},
    {"prime-rl", "inference_logprobs", "trainer_logprobs", "loss_mask", ""},
    {"ROLL", "infer_logprobs", "old_log_probs", "response_mask", ""},
    {"AReaL", "logprobs", "prox_logp", "loss_mask", ""},
};

std::string names_of(const ArrayFile& file) {
  std::string text;
  for (const auto& [name, array] : file.arrays) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing" : text;
}

bool holds(const ArrayFile& file, std::string_view name) {
  return file.arrays.contains(std::string(name));
}

}  // namespace

std::span<const LogProbNames> known_log_prob_names() { return kNames; }

const LogProbNames& names_in(const ArrayFile& file) {
  for (const LogProbNames& names : kNames) {
    if (holds(file, names.old_values) && holds(file, names.new_values)) return names;
  }
  throw UsageError(file.path + ": no pair of old and new log-probs is known among its arrays (" +
                   names_of(file) + "); name them with --old PATH:NAME --new PATH:NAME");
}

}  // namespace gradcheck
