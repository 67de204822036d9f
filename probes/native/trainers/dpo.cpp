// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/dpo.h"

#include <ATen/ops/log_sigmoid.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradcheck::native {
namespace {

at::Tensor chosen_ratio(const PairLogProbs& p) { return p.policy_chosen - p.reference_chosen; }
at::Tensor rejected_ratio(const PairLogProbs& p) {
  return p.policy_rejected - p.reference_rejected;
}
at::Tensor margin(const PairLogProbs& p) { return chosen_ratio(p) - rejected_ratio(p); }

// The same with log-probs averaged over tokens.
at::Tensor mean_margin(const PairLogProbs& p) {
  return chosen_ratio(p) / p.chosen_tokens - rejected_ratio(p) / p.rejected_tokens;
}

// A share `smoothing` of the labels is taken to be flipped.
at::Tensor smoothed(const at::Tensor& z, double smoothing) {
  return log_sigmoid(z) * (smoothing - 1) - log_sigmoid(-z) * smoothing;
}

at::Tensor sigmoid(const PairLogProbs& p, const DpoOptions& o) {
  return smoothed(margin(p) * o.beta, o.label_smoothing);
}

at::Tensor sigmoid_norm(const PairLogProbs& p, const DpoOptions& o) {
  return smoothed(mean_margin(p) * o.beta, o.label_smoothing);
}

at::Tensor hinge(const PairLogProbs& p, const DpoOptions& o) {
  return (1 - margin(p) * o.beta).clamp_min(0);
}

at::Tensor ipo(const PairLogProbs& p, const DpoOptions& o) {
  return (mean_margin(p) - 1 / (2 * o.beta)).square();
}

at::Tensor robust(const PairLogProbs& p, const DpoOptions& o) {
  const at::Tensor z = margin(p) * o.beta;
  const double e = o.label_smoothing;
  return (log_sigmoid(z) * (e - 1) + log_sigmoid(-z) * e) / (1 - 2 * e);
}

// Without smoothing the original takes 1e-3, because log 0 is not finite.
at::Tensor exo_pair(const PairLogProbs& p, const DpoOptions& o) {
  const at::Tensor z = margin(p) * o.beta;
  const double e = o.label_smoothing == 0 ? 1e-3 : o.label_smoothing;
  return z.sigmoid() * (log_sigmoid(z) - std::log(1 - e)) +
         (-z).sigmoid() * (log_sigmoid(-z) - std::log(e));
}

at::Tensor nca_pair(const PairLogProbs& p, const DpoOptions& o) {
  const at::Tensor chosen = chosen_ratio(p) * o.beta;
  const at::Tensor rejected = rejected_ratio(p) * o.beta;
  return -log_sigmoid(chosen) - log_sigmoid(-chosen) * 0.5 - log_sigmoid(-rejected) * 0.5;
}

at::Tensor bco_pair(const PairLogProbs& p, const DpoOptions& o) {
  return -log_sigmoid(chosen_ratio(p) * o.beta - p.reward_mean) -
         log_sigmoid(p.reward_mean - rejected_ratio(p) * o.beta);
}

at::Tensor sppo_hard(const PairLogProbs& p, const DpoOptions& o) {
  const double target = 0.5 / o.beta;
  return (chosen_ratio(p) - target).square() + (rejected_ratio(p) + target).square();
}

at::Tensor sorted(const at::Tensor& x) { return std::get<0>(x.sort(0)); }

at::Tensor aot(const PairLogProbs& p, const DpoOptions& o) {
  const at::Tensor policy = sorted(p.policy_chosen - p.policy_rejected);
  const at::Tensor reference = sorted(p.reference_chosen - p.reference_rejected);
  return smoothed((policy - reference) * o.beta, o.label_smoothing);
}

at::Tensor aot_unpaired(const PairLogProbs& p, const DpoOptions& o) {
  const at::Tensor delta = sorted(chosen_ratio(p)) - sorted(rejected_ratio(p));
  return smoothed(delta * o.beta, o.label_smoothing);
}

at::Tensor apo_zero(const PairLogProbs& p, const DpoOptions& o) {
  return 1 - (chosen_ratio(p) * o.beta).sigmoid() + (rejected_ratio(p) * o.beta).sigmoid();
}

at::Tensor apo_down(const PairLogProbs& p, const DpoOptions& o) {
  return (chosen_ratio(p) * o.beta).sigmoid() + 1 - (margin(p) * o.beta).sigmoid();
}

// Log-ratio modulated: logistic where the margin is small, exponential where it is large.
at::Tensor discopop(const PairLogProbs& p, const DpoOptions& o) {
  const at::Tensor z = margin(p) * o.beta;
  const at::Tensor share = (z / o.discopop_tau).sigmoid();
  return -log_sigmoid(z) * (1 - share) + (-z).exp() * share;
}

at::Tensor sft(const PairLogProbs& p, const DpoOptions&) {
  return -p.policy_chosen.sum() / p.chosen_tokens.sum();
}

struct DpoRow {
  std::string_view name;
  at::Tensor (*loss)(const PairLogProbs&, const DpoOptions&);
};

constexpr std::array<DpoRow, 15> kDpoRows = {{
    {"sigmoid", sigmoid},
    {"hinge", hinge},
    {"ipo", ipo},
    {"robust", robust},
    {"exo_pair", exo_pair},
    {"nca_pair", nca_pair},
    {"bco_pair", bco_pair},
    {"sppo_hard", sppo_hard},
    {"aot", aot},
    {"aot_unpaired", aot_unpaired},
    {"apo_zero", apo_zero},
    {"apo_down", apo_down},
    {"discopop", discopop},
    {"sft", sft},
    {"sigmoid_norm", sigmoid_norm},
}};

const DpoRow& find_dpo(std::string_view name) {
  for (const DpoRow& row : kDpoRows) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("unknown DPO objective " + std::string(name));
}

}  // namespace

at::Tensor dpo_loss(const std::vector<Objective>& objectives, const PairLogProbs& pairs,
                    const DpoOptions& options) {
  at::Tensor total;
  for (const Objective& objective : objectives) {
    const at::Tensor term = find_dpo(objective.name).loss(pairs, options).mean() * objective.weight;
    total = total.defined() ? total + term : term;
  }
  return total;
}

at::Tensor dpo_rewards(const PairLogProbs& pairs, const DpoOptions& options) {
  return (at::cat({chosen_ratio(pairs), rejected_ratio(pairs)}) * options.beta).detach();
}

}  // namespace gradcheck::native
