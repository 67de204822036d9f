// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/grpo.h"

#include <ATen/ops/minimum.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradcheck::native {
namespace {

constexpr double kClip = 0.2;    // ε
constexpr double kCispoMax = 5;  // cispo's upper bound of the ratio, as in minimind
constexpr double kSapoUp = 1;    // sapo's temperatures, for advantages above and below zero
constexpr double kSapoDown = 1.05;

at::Tensor log_ratio(const GrpoBatch& b) { return b.policy - b.old; }
at::Tensor advantage(const GrpoBatch& b) { return b.advantages.unsqueeze(-1); }
at::Tensor lengths(const GrpoBatch& b) { return b.completed.sum(-1).clamp_min(1); }

at::Tensor clipped(const at::Tensor& ratio, const at::Tensor& a) {
  return -at::minimum(ratio * a, ratio.clamp(1 - kClip, 1 + kClip) * a);
}

// Losses of single tokens, [B, T−1], or of whole sequences, [B, 1].

at::Tensor ratio_tokens(const GrpoBatch& b) { return clipped(log_ratio(b).exp(), advantage(b)); }

at::Tensor cispo_tokens(const GrpoBatch& b) {
  const at::Tensor weight = log_ratio(b).exp().clamp_max(kCispoMax).detach();
  return -weight * advantage(b) * b.policy;
}

// A soft gate instead of a hard clip: 4 σ(τ (ρ − 1)) / τ.
at::Tensor sapo_tokens(const GrpoBatch& b) {
  const at::Tensor a = advantage(b);
  const at::Tensor tau = at::where(a > 0, at::full_like(a, kSapoUp), at::full_like(a, kSapoDown));
  const at::Tensor gate = ((log_ratio(b).exp() - 1) * tau).sigmoid() * 4 / tau;
  return -gate * a;
}

// A detached weight of the whole sequence, w^k e^{λ (1 − w)}, other k and λ below zero advantage.
at::Tensor vespo_tokens(const GrpoBatch& b) {
  const at::Tensor a = advantage(b);
  const auto by_sign = [&](double up, double down) {
    return at::where(a >= 0, at::full_like(a, up), at::full_like(a, down));
  };
  const at::Tensor tokens = log_ratio(b).clamp(-20, 20) * b.completed;
  const at::Tensor log_w = tokens.sum(-1, /*keepdim=*/true).clamp(std::log(1e-8), 20);
  const at::Tensor lambda = by_sign(3, 2);
  const at::Tensor weight = (lambda + by_sign(2, 3) * log_w - lambda * log_w.exp()).exp();
  return -weight.detach() * a * b.policy;
}

at::Tensor luspo_sequences(const GrpoBatch& b) {
  const at::Tensor mean = (log_ratio(b) * b.completed).sum(-1) / lengths(b);
  return clipped(mean.exp().unsqueeze(-1), advantage(b));
}

// What becomes of token losses.

at::Tensor mean_of_row_means(const at::Tensor& tokens, const GrpoBatch& b) {
  return ((tokens * b.completed).sum(-1) / lengths(b)).mean();
}
at::Tensor mean_of_tokens(const at::Tensor& tokens, const GrpoBatch& b) {
  return (tokens * b.completed).sum() / b.completed.sum().clamp_min(1);
}
at::Tensor over_longest(const at::Tensor& tokens, const GrpoBatch& b) {
  return (tokens * b.completed).sum() / (tokens.size(0) * b.longest);
}
// DDP's mean over ranks then makes it the mean over the tokens of all ranks.
at::Tensor over_token_share(const at::Tensor& tokens, const GrpoBatch& b) {
  return (tokens * b.completed).sum() / b.token_share;
}
at::Tensor times_length(const at::Tensor& sequences, const GrpoBatch& b) {
  return (sequences * lengths(b).unsqueeze(-1)).mean();
}

struct GrpoRow {
  std::string_view name;
  at::Tensor (*tokens)(const GrpoBatch&);
  at::Tensor (*total)(const at::Tensor&, const GrpoBatch&);
};

constexpr std::array<GrpoRow, 8> kGrpoRows = {{
    {"dapo", ratio_tokens, over_token_share},
    {"grpo", ratio_tokens, mean_of_row_means},
    {"bnpo", ratio_tokens, mean_of_tokens},
    {"dr_grpo", ratio_tokens, over_longest},
    {"cispo", cispo_tokens, over_token_share},
    {"sapo", sapo_tokens, mean_of_row_means},
    {"vespo", vespo_tokens, over_token_share},
    {"luspo", luspo_sequences, times_length},
}};

const GrpoRow& find_grpo(std::string_view name) {
  for (const GrpoRow& row : kGrpoRows) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("unknown GRPO objective " + std::string(name));
}

at::Tensor k3(const GrpoBatch& b) {
  const at::Tensor d = b.reference - b.policy;
  return d.exp() - d - 1;
}

}  // namespace

at::Tensor group_advantages(const at::Tensor& rewards, std::int64_t group) {
  const at::Tensor grouped = rewards.view({-1, group});
  const at::Tensor centred = grouped - grouped.mean(-1, /*keepdim=*/true);
  const at::Tensor spread = grouped.std(-1, /*unbiased=*/true, /*keepdim=*/true);
  return (centred / (spread + 1e-4)).view(-1);
}

at::Tensor grpo_loss(const std::vector<Objective>& objectives, const GrpoBatch& batch) {
  double beta = 0;
  for (const Objective& objective : objectives) {
    if (objective.name == "k3") beta = objective.weight;
  }
  at::Tensor total = at::zeros({}, batch.policy.options());
  for (const Objective& objective : objectives) {
    if (objective.name == "k3") continue;
    const GrpoRow& row = find_grpo(objective.name);
    const at::Tensor tokens = row.tokens(batch);
    total =
        total + row.total(beta == 0 ? tokens : tokens + k3(batch) * beta, batch) * objective.weight;
  }
  return total;
}

}  // namespace gradcheck::native
