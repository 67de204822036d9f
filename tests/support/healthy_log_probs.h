// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/broken_log_probs.h"

namespace gradcheck::toy {

// Dumps in which nothing is wrong, many of them near something that would be.

inline std::vector<Case> kernel_noise_cases() {
  const auto fine = Outcome::consistent;
  return {
      {"recomputed in fp32",
       "the same forward again",
       {},
       fine,
       {},
       [] { return with_new([](Pass&) {}); }},
      {"fp32 in other chunks",
       "logits differ by 1e-5",
       {},
       fine,
       in_regime(Regime::same_stack, DType::f32),
       [] { return with_new([](Pass& p) { p.logit_noise = 1e-5; }); }},
      {"bf16 in another batch shape",
       "logits differ by 0.03",
       {},
       fine,
       in_regime(Regime::same_stack),
       [] { return with_new([](Pass& p) { p.logit_noise = 0.03; }); }},
      {"another engine in bf16",
       "bf16 logits and other kernels",
       {},
       fine,
       in_regime(Regime::other_engine),
       [] {
         return with_new([](Pass& p) {
           p.logits = as_bf16;
           p.logit_noise = 0.02;
         });
       }},
      {"regime not stated",
       "logits differ by 0.02",
       {},
       fine,
       {},
       [] { return with_new([](Pass& p) { p.logit_noise = 0.02; }); }},
      {"long sequences",
       "product of ratios far from 1",
       {},
       fine,
       in_regime(Regime::other_engine),
       [] {
         return from([](Recipe& r) {
           r.layout = {6, 900, 1000, 7};
           r.new_pass.logit_noise = 0.04;
         });
       }},
  };
}

inline std::vector<Case> layout_cases() {
  const auto fine = Outcome::consistent;
  return {
      {"some rows equal, some not",
       "two rows of eight in another batch",
       {},
       fine,
       in_regime(Regime::same_stack),
       [] {
         return from([](Recipe& r) { r.new_pass.logit_noise = 0.03; },
                     [](LogProbShard& s) {
                       without_entropy(s);
                       for_each_row(s, [&](std::size_t row, std::size_t begin, std::size_t end) {
                         if (row % 8 < 2) return;
                         for (std::size_t i = begin; i < end; ++i)
                           s.new_values[i] = s.old_values[i];
                       });
                     });
       }},
      {"certain tokens",
       "exact zeros on both sides",
       {},
       fine,
       {},
       [] {
         return from([](Recipe& r) { r.new_pass.logit_noise = 0.02; },
                     [](LogProbShard& s) {
                       without_entropy(s);
                       for (std::size_t i = 0; i < s.old_values.size(); i += 5) {
                         s.old_values[i] = 0;
                         s.new_values[i] = i % 2 == 0 ? 0 : -1e-7;
                       }
                     });
       }},
  };
}

inline std::vector<Case> rank_cases() {
  const auto fine = Outcome::consistent;
  return {
      {"one rank",
       "its data differ from the others' in difficulty",
       {},
       fine,
       in_regime(Regime::other_engine),
       [] {
         Recipe recipe;
         recipe.layout.rows = 12;
         auto shards = made_on_ranks(recipe, 4, [](int rank, Recipe& r) {
           r.new_pass.logit_noise = rank == 2 ? 0.03 : 0.015;
         });
         for (LogProbShard& shard : shards) without_entropy(shard);
         return shards;
       }},
      {"padded rows with noise",
       "padding on the left, masked",
       {},
       fine,
       in_regime(Regime::same_stack),
       [] {
         std::vector<std::size_t> widths;
         for (std::size_t row = 0; row < Layout{}.rows; ++row) widths.push_back(row % 4 * 8);
         return from([](Recipe& r) { r.new_pass.logit_noise = 0.02; },
                     [widths](LogProbShard& s) { pad_left(s, widths); });
       }},
  };
}

inline std::vector<Case> stated_cases() {
  const auto fine = Outcome::consistent;
  LogProbConditions experts = in_regime(Regime::other_engine);
  experts.mixture_of_experts = true;
  return {
      {"entropy given",
       "tokens sampled from what both log-probs are of",
       {},
       fine,
       {},
       [] { return from([](Recipe& r) { r.new_pass.logit_noise = 0.02; }, [](LogProbShard&) {}); }},
      {"experts flip, declared",
       "1 % of the tokens take another path",
       {},
       fine,
       experts,
       [] {
         return with_new([](Pass& p) {
           p.logit_noise = 0.01;
           p.spike_share = 0.01;
         });
       }},
      {"8-bit weights",
       "weights differ by 1 %",
       {},
       fine,
       in_regime(Regime::quantised),
       [] { return with_new([](Pass& p) { p.weight_noise = 0.01; }); }},
  };
}

inline std::vector<Case> declared_cases() {
  const auto fine = Outcome::consistent;
  LogProbConditions top_p;
  top_p.top_p = 0.9;
  LogProbConditions tempered;
  tempered.temperature = 0.8;
  LogProbConditions lagged;
  lagged.lag = 4;
  return {
      {"top-p declared",
       "old over the kept 0.9, as declared",
       {},
       fine,
       top_p,
       [] { return from([](Recipe& r) { r.sampling.top_p = r.old_pass.top_p = 0.9; }); }},
      {"temperature declared",
       "old at 0.8, new at 1, as declared",
       {},
       fine,
       tempered,
       [] {
         return from([](Recipe& r) { r.sampling.temperature = r.old_pass.temperature = 0.8; });
       }},
      {"lag declared",
       "weights of four updates ago, as declared",
       {},
       fine,
       lagged,
       [] {
         return from([](Recipe& r) { r.new_pass.weight_noise = 0.05; },
                     [](LogProbShard& s) {
                       without_entropy(s);
                       s.updates = 4;
                     });
       }},
  };
}

inline std::vector<Case> healthy_cases() {
  return gathered({kernel_noise_cases, layout_cases, rank_cases, stated_cases, declared_cases});
}

}  // namespace gradcheck::toy
