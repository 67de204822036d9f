// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace gradcheck::toy {

// A policy small enough for tests: logits are W·h with a fixed W and one random h a token, of mixed
// sharpness, so that every cause on the way from weights to log-probs can be put in where it
// arises. Everything follows from seeds.

inline constexpr std::size_t kVocabulary = 256;
inline constexpr std::size_t kHidden = 32;

inline double as_f32(double value) { return static_cast<float>(value); }

inline double as_bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000U;
  return std::bit_cast<float>(rounded);
}

inline double as_f16(double value) {
  if (value == 0) return 0;
  const int step = std::max(std::ilogb(value) - 10, -24);
  return std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
}

using Round = double (*)(double);

// How one pass differs from an exact fp32 one. Seeds choose the noise of that pass.
struct Pass {
  double temperature = 1;
  double dropout = 0;       // of hidden units
  double weight_noise = 0;  // sd of a fixed change of W: other weights
  double logit_noise = 0;   // sd, of every logit anew: kernels, batch shapes
  double spike_share = 0;   // of tokens whose hidden state jumps: another expert
  Round logits = nullptr;   // rounding of the logits
  Round logsumexp = nullptr;
  Round softmax = nullptr;
  Round result = nullptr;
  double top_p = 1;
  std::size_t top_k = 0;
  std::size_t padded_rows = 0;  // of the vocabulary, with logit 0
  double offset = 12;           // of all logits; the distribution does not see it
  unsigned seed = 1;
};

struct Place {
  std::size_t row = 0;
  std::size_t position = 0;
};

class Policy {
 public:
  explicit Policy(unsigned seed) : seed_(seed), weights_(kVocabulary * kHidden), change_(weights_) {
    fill(weights_, seed, 1.0);
    fill(change_, seed + 77, 1.0);
  }

  // Logits at a place; `shift` is added to the hidden state along a fixed direction of that place.
  std::vector<double> logits(Place place, const Pass& pass, double shift = 0) const {
    std::vector<double> hidden = hidden_at(place, 0);
    const std::vector<double> away = hidden_at(place, 1);
    for (std::size_t i = 0; i < kHidden; ++i) hidden[i] += shift * away[i];
    std::mt19937_64 random(mix(pass.seed, place, 2));
    if (pass.spike_share > 0 && std::bernoulli_distribution(pass.spike_share)(random)) {
      for (std::size_t i = 0; i < kHidden; ++i) hidden[i] += 0.25 * away[i];
    }
    drop(hidden, pass.dropout, random);
    std::vector<double> logits = product(hidden, pass);
    std::normal_distribution<double> noise(0, pass.logit_noise > 0 ? pass.logit_noise : 1);
    for (double& logit : logits) {
      if (pass.logit_noise > 0) logit += noise(random);
      logit = as_f32(logit + pass.offset);
      if (pass.logits != nullptr) logit = pass.logits(logit);
      logit /= pass.temperature;
      if (pass.logits != nullptr) logit = pass.logits(logit);
    }
    logits.insert(logits.end(), pass.padded_rows, 0.0);
    return logits;
  }

  std::mt19937_64 random_at(Place place, unsigned salt) const {
    return std::mt19937_64(mix(seed_, place, salt));
  }

 private:
  static std::uint64_t mix(std::uint64_t seed, Place place, std::uint64_t salt) {
    return ((seed * 1000003 + place.row) * 1000003 + place.position) * 31 + salt;
  }

  static void fill(std::vector<double>& values, std::uint64_t seed, double sd) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, sd);
    for (double& value : values) value = normal(random);
  }

  std::vector<double> hidden_at(Place place, unsigned salt) const {
    std::mt19937_64 random(mix(seed_, place, 10));
    const double sharpness = std::uniform_real_distribution<double>(1, 6)(random);
    std::vector<double> hidden(kHidden);
    fill(hidden, mix(seed_, place, 11 + salt), sharpness / std::sqrt(double{kHidden}));
    return hidden;
  }

  static void drop(std::vector<double>& hidden, double share, std::mt19937_64& random) {
    if (share == 0) return;
    std::bernoulli_distribution dropped(share);
    for (double& value : hidden) value = dropped(random) ? 0 : value / (1 - share);
  }

  std::vector<double> product(const std::vector<double>& hidden, const Pass& pass) const {
    std::vector<double> logits(kVocabulary);
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      const std::size_t at = v * kHidden;
      for (std::size_t i = 0; i < kHidden; ++i) logits[v] += weights_[at + i] * hidden[i];
      if (pass.weight_noise == 0) continue;
      for (std::size_t i = 0; i < kHidden; ++i) {
        logits[v] += pass.weight_noise * change_[at + i] * hidden[i];
      }
    }
    return logits;
  }

  unsigned seed_;
  std::vector<double> weights_;
  std::vector<double> change_;  // what an update or a quantiser does to the weights
};

// Log-sum-exp over the kept logits: all of them, or those that top-k and top-p keep.
inline double logsumexp(const std::vector<double>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

// Tokens that the filter keeps, likeliest first.
inline std::vector<std::size_t> kept(const std::vector<double>& logits, const Pass& pass) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (pass.top_k > 0) order.resize(std::min(order.size(), pass.top_k));
  const double total = logsumexp(logits);
  double mass = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    mass += std::exp(logits[order[i]] - total);
    if (mass >= pass.top_p) order.resize(i + 1);
  }
  return order;
}

inline double rounded(Round round, double value) { return round == nullptr ? value : round(value); }

inline double log_prob(std::vector<double> logits, std::size_t token, const Pass& pass) {
  const double own = logits[token];
  if (pass.top_p < 1 || pass.top_k > 0) {
    std::vector<double> of_kept;
    for (const std::size_t index : kept(logits, pass)) of_kept.push_back(logits[index]);
    logits = of_kept;
  }
  const double lse = rounded(pass.logsumexp, logsumexp(logits));
  if (pass.softmax != nullptr) return as_f32(std::log(pass.softmax(std::exp(own - lse))));
  return rounded(pass.result, as_f32(own - lse));
}

inline double entropy(const std::vector<double>& logits) {
  const double lse = logsumexp(logits);
  double sum = 0;
  for (const double logit : logits) sum -= std::exp(logit - lse) * (logit - lse);
  return sum;
}

inline std::size_t sample(const std::vector<double>& logits, const Pass& pass,
                          std::mt19937_64& random) {
  std::vector<double> weights(logits.size(), 0);
  const double lse = logsumexp(logits);
  for (const std::size_t index : kept(logits, pass)) weights[index] = std::exp(logits[index] - lse);
  return std::discrete_distribution<std::size_t>(weights.begin(), weights.end())(random);
}

}  // namespace gradcheck::toy
