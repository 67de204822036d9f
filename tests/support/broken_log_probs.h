// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include "tests/support/log_prob_cases.h"

namespace gradcheck::toy {

// The causes that can be built from arrays, each put in where it arises.

inline LogProbConditions in_regime(Regime regime, DType dtype = DType::bf16) {
  LogProbConditions conditions;
  conditions.regime = regime;
  conditions.dtype = dtype;
  return conditions;
}

inline std::vector<LogProbShard> with_new(const std::function<void(Pass&)>& change) {
  Recipe recipe;
  change(recipe.new_pass);
  return edited(made(recipe), without_entropy);
}

inline std::vector<LogProbShard> from(const std::function<void(Recipe&)>& change,
                                      const Edit& edit = without_entropy) {
  Recipe recipe;
  change(recipe);
  return edited(made(recipe), edit);
}

// bf16 kernels on both sides: noise that other causes stand in.
inline void with_noise(Recipe& recipe) { recipe.new_pass.logit_noise = 0.02; }

inline std::vector<Case> precision_cases() {
  const LogProbConditions stack = in_regime(Regime::same_stack);
  const LogProbConditions stack_f32 = in_regime(Regime::same_stack, DType::f32);
  return {
      {"bf16 log_softmax", "new rounded to bf16", Cause::bf16_log_softmax, Outcome::inconsistent,
       stack, [] { return with_new([](Pass& p) { p.result = as_bf16; }); }},
      {"fp16 log_softmax", "new rounded to fp16", Cause::bf16_log_softmax, Outcome::inconsistent,
       stack, [] { return with_new([](Pass& p) { p.result = as_f16; }); }},
      {"log of a bf16 softmax", "softmax rounded to bf16", Cause::bf16_log_softmax,
       Outcome::inconsistent, stack, [] { return with_new([](Pass& p) { p.softmax = as_bf16; }); }},
      {"bf16 on both sides", "old and new rounded to bf16, other kernels", Cause::bf16_log_softmax,
       Outcome::consistent, stack,
       [] {
         return from([](Recipe& r) {
           r.old_pass.result = r.new_pass.result = as_bf16;
           r.new_pass.logit_noise = 0.005;
         });
       }},
      {"bf16 logsumexp", "the logsumexp rounded to bf16", Cause::low_precision_logsumexp,
       Outcome::inconsistent, stack,
       [] { return with_new([](Pass& p) { p.logsumexp = as_bf16; }); }},
      {"bf16 logit minus bf16 logsumexp", "a fused loss in bf16", Cause::low_precision_logsumexp,
       Outcome::inconsistent, stack,
       [] { return with_new([](Pass& p) { p.logits = p.logsumexp = as_bf16; }); }},
      {"bf16 logits", "the head of new in bf16, fp32 declared", Cause::low_precision_logits,
       Outcome::inconsistent, stack_f32,
       [] { return with_new([](Pass& p) { p.logits = as_bf16; }); }},
      {"temperature divided in bf16", "bf16 logits divided in place", Cause::low_precision_logits,
       Outcome::inconsistent, stack_f32,
       [] {
         return from([](Recipe& r) {
           r.sampling.temperature = r.old_pass.temperature = r.new_pass.temperature = 0.8;
           r.new_pass.logits = as_bf16;
         });
       }},
  };
}

inline std::vector<Case> temperature_cases() {
  return {
      {"trainer forgot the temperature",
       "old at 0.8, new at 1",
       Cause::temperature,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) {
           r.sampling.temperature = r.old_pass.temperature = 0.8;
           with_noise(r);
         });
       }},
      {"engine returns raw log-probs",
       "sampled at 0.8, old at 1, new at 0.8",
       Cause::temperature,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) {
           r.sampling.temperature = r.new_pass.temperature = 0.8;
           with_noise(r);
         });
       }},
      {"temperature in neither log-prob",
       "sampled at 0.8, both at 1, entropy given",
       Cause::temperature,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) { r.sampling.temperature = 0.8; },
                     [](LogProbShard& s) { s.new_values[0] = as_f32(s.new_values[0] - 1e-6); });
       }},
  };
}

inline std::vector<Case> sampling_cases() {
  return {
      {"top-p renormalised",
       "old over the kept 0.9",
       Cause::renormalised_sampling,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) {
           r.sampling.top_p = r.old_pass.top_p = 0.9;
           r.new_pass.logit_noise = 0.01;
         });
       }},
      {"top-k renormalised",
       "old over the kept 20",
       Cause::renormalised_sampling,
       Outcome::inconsistent,
       {},
       [] { return from([](Recipe& r) { r.sampling.top_k = r.old_pass.top_k = 20; }); }},
      {"trainer filters what was sampled",
       "new over its own top 20, old over all",
       Cause::renormalised_sampling,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe&) {},
                     [](LogProbShard& s) {
                       without_entropy(s);
                       for (std::size_t i = 5; i < s.new_values.size(); i += 200) {
                         s.new_values[i] = -std::numeric_limits<double>::infinity();
                       }
                     });
       }},
      {"vocabulary padding",
       "32 padded rows in the softmax of new",
       Cause::vocabulary_padding,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) {
           r.sampling.offset = r.old_pass.offset = r.new_pass.offset = 0;
           r.new_pass.padded_rows = 32;
         });
       }},
  };
}

inline std::vector<Case> dropout_cases() {
  return {
      {"dropout in new",
       "0.1 of the hidden units, no repeat given",
       Cause::dropout,
       Outcome::inconsistent,
       {},
       [] { return with_new([](Pass& p) { p.dropout = 0.1; }); }},
      {"dropout in new, repeated",
       "0.1 of the hidden units, a repeat given",
       Cause::dropout,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) { r.new_pass.dropout = 0.1; },
                     [](LogProbShard& s) {
                       Recipe again;
                       again.new_pass.dropout = 0.1;
                       again.new_pass.seed = 5;
                       s.new_repeat = made(again).new_values;
                       without_entropy(s);
                     });
       }},
      {"dropout in both",
       "0.1 of the hidden units on both sides, a repeat given",
       Cause::dropout,
       Outcome::inconsistent,
       {},
       [] {
         return from(
             [](Recipe& r) {
               r.old_pass.dropout = r.new_pass.dropout = 0.1;
               r.new_pass.seed = 2;
             },
             [](LogProbShard& s) {
               Recipe again;
               again.new_pass.dropout = 0.1;
               again.new_pass.seed = 5;
               s.new_repeat = made(again).new_values;
               without_entropy(s);
             });
       }},
  };
}

inline std::vector<Case> kernel_cases() {
  return {
      {"nondeterministic kernels", "the same forward differs by 1e-6", Cause::nondeterministic,
       Outcome::consistent, in_regime(Regime::same_kernels),
       [] {
         return from([](Recipe& r) { r.new_pass.logit_noise = 2e-6; },
                     [](LogProbShard& s) {
                       Recipe again;
                       again.new_pass.logit_noise = 2e-6;
                       again.new_pass.seed = 5;
                       s.new_repeat = made(again).new_values;
                       without_entropy(s);
                     });
       }},
  };
}

inline std::vector<Case> padding_cases() {
  return {
      {"positions count the padding",
       "half the rows padded on the left",
       Cause::position_ids,
       Outcome::inconsistent,
       {},
       [] {
         std::vector<std::size_t> widths;
         for (std::size_t row = 0; row < Layout{}.rows; ++row) widths.push_back(row % 4 * 8);
         return from(
             [](Recipe& r) {
               r.shift = [](std::size_t row, std::size_t t) {
                 return 0.02 * static_cast<double>(row % 4) * (1 + static_cast<double>(t) / 32);
               };
             },
             [widths](LogProbShard& s) { pad_left(s, widths); });
       }},
      {"padding attended to",
       "half the rows padded on the left",
       Cause::padding,
       Outcome::inconsistent,
       {},
       [] {
         std::vector<std::size_t> widths;
         for (std::size_t row = 0; row < Layout{}.rows; ++row) widths.push_back(row % 2 * 16);
         return from(
             [](Recipe& r) {
               r.shift = [](std::size_t row, std::size_t t) {
                 return row % 2 == 0 ? 0 : 0.4 / (1 + static_cast<double>(t) / 4);
               };
             },
             [widths](LogProbShard& s) { pad_left(s, widths); });
       }},
  };
}

inline std::vector<Case> forward_cases() {
  return {
      {"packing leaks",
       "rows see the row before, the first of four does not",
       Cause::packing,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) {
           r.shift = [](std::size_t row, std::size_t t) {
             return row % 4 == 0 ? 0 : 0.4 / (1 + static_cast<double>(t) / 4);
           };
         });
       }},
      {"packs of two",
       "every second row sees the one before, over its whole length",
       Cause::packing,
       Outcome::inconsistent,
       {},
       [] {
         return from([](Recipe& r) {
           r.shift = [](std::size_t row, std::size_t t) {
             return row % 2 == 0 ? 0 : (t % 2 == 0 ? 0.4 : -0.3);
           };
         });
       }},
      {"experts flip",
       "3 % of the tokens take another path",
       Cause::expert_routing,
       Outcome::consistent,
       {},
       [] {
         return with_new([](Pass& p) {
           p.logit_noise = 0.01;
           p.spike_share = 0.03;
         });
       }},
  };
}

}  // namespace gradcheck::toy
