// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/scorer.h"

#include <ATen/ops/log_softmax.h>

#include <array>
#include <cstdio>
#include <utility>

#include "probes/native/losses/autocast.h"
#include "probes/native/snapshot/log_prob_file.h"

namespace gradcheck::native {
namespace {

// What numbers of a micro-step are drawn for.
enum Purpose : std::int64_t { kChoices, kSampling, kOld, kUpdate, kRepeat };

void note(const Bench& bench, std::string text) {
  EventRecord event;
  event.text = std::move(text);
  bench.journal.event(std::move(event));
}

void say_what_is_modelled(const RollOut& roll_out, const Bench& bench) {
  if (roll_out.autocast == "none") return;
  note(bench, "modelled: CUDA's autocast policy, by which log_softmax is float32 inside a region");
  if (roll_out.autocast == "fp16") note(bench, "modelled: half precision, by rounding the logits");
}

at::Tensor targets_of(const at::Tensor& tokens) { return tokens.narrow(1, 1, tokens.size(1) - 1); }

// Zero where no token counts.
at::Tensor picked(const at::Tensor& scores, const Sequences& batch) {
  const at::Tensor all = scores.gather(-1, targets_of(batch.tokens).unsqueeze(-1)).squeeze(-1);
  return at::where(batch.completed, all, at::zeros_like(all));
}

at::Tensor one_late(const at::Tensor& x) {
  return at::cat({x.narrow(1, 0, 1), x.narrow(1, 0, x.size(1) - 1)}, 1);
}

// One token a row by its cumulative distribution: [B] of log-probs [B, V] and numbers in [0, 1).
at::Tensor choose(const at::Tensor& log_probs, const at::Tensor& numbers) {
  const at::Tensor below = log_probs.exp().cumsum(-1).le(numbers.unsqueeze(-1));
  return below.sum(-1).clamp_max(log_probs.size(-1) - 1);
}

void put_where(at::Tensor place, const at::Tensor& where, const at::Tensor& values) {
  place.copy_(at::where(where, values, place));
}

std::string line_of(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// As Python prints a float: 0.0, 0.1.
std::string python_float(double value) {
  std::string text = line_of("%g", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

Scorer::Scorer(const Bench& bench) : bench_(bench), roll_out_(bench.run.program.roll_out) {
  if (!roll_out_) return;
  bench_.policy.model().set_dropout(roll_out_->dropout);
  say_what_is_modelled(*roll_out_, bench_);
}

bool Scorer::makes_mistake(std::string_view name) const {
  return roll_out_ && roll_out_->mistake == name;
}

double Scorer::update_temperature() const {
  return makes_mistake("temperature") ? 1 : roll_out_->temperature;
}

// Ranks that share their data share what is drawn for them; epochs do not.
BatchKey Scorer::here() const {
  BatchKey key = key_of(bench_.run, bench_.journal.step(), bench_.journal.micro());
  key.step = bench_.journal.step();
  return key;
}

void Scorer::seed_dropout(std::int64_t purpose) const {
  bench_.policy.model().seed_dropout(draw_seed(here(), purpose));
}

at::Tensor Scorer::logits(const Forward& forward, const at::Tensor& tokens) const {
  const Autocast region(roll_out_->autocast == "bf16");
  const at::Tensor logits = forward.logits(tokens);
  return roll_out_->autocast == "fp16" ? logits.to(at::kHalf) : logits;
}

at::Tensor Scorer::whole_logits(const Forward& forward, const Sequences& batch) const {
  return logits(forward, batch.tokens).narrow(1, 0, batch.tokens.size(1) - 1);
}

// Two sequences a row: the second is attended to as if it went on from the first.
at::Tensor Scorer::packed_logits(const Forward& forward, const Sequences& batch) const {
  const std::int64_t rows = batch.tokens.size(0);
  const std::int64_t length = batch.tokens.size(1);
  const at::Tensor packed = logits(forward, batch.tokens.reshape({rows / 2, 2 * length}));
  return packed.reshape({rows, length, packed.size(-1)}).narrow(1, 0, length - 1);
}

// As CUDA's policy has it inside a region of autocast.
at::Tensor Scorer::scores(const at::Tensor& logits, double temperature) const {
  return at::log_softmax(logits.to(at::kFloat) / temperature, -1);
}

// Prompts and what tools have said stay as they are.
Sequences Scorer::complete(const Sequences& batch) {
  if (!roll_out_) return batch;
  bench_.journal.enter("roll_out");
  Sequences made{batch.tokens.clone(), batch.completed};
  BatchKey key = here();
  key.seed = draw_seed(key, kChoices);
  const at::Tensor numbers =
      (draw_numbers(key, targets_of(made.tokens).numel()) + 1).div(2).view_as(batch.completed);
  sampled_ = at::zeros(batch.completed.sizes());
  seed_dropout(kSampling);
  bench_.policy.roll_out(roll_out_->eval, [&](const Forward& module) {
    for (std::int64_t at = 0; at < batch.completed.size(1); ++at) {
      const at::Tensor counts = batch.completed.select(1, at);
      if (!counts.any().item<bool>()) continue;
      const at::Tensor last = logits(module, made.tokens.narrow(1, 0, at + 1)).select(1, at);
      const at::Tensor known = scores(last, roll_out_->temperature);
      const at::Tensor chosen = choose(known, numbers.select(1, at));
      put_where(made.tokens.select(1, at + 1), counts, chosen);
      put_where(sampled_.select(1, at), counts, known.gather(-1, chosen.unsqueeze(-1)).squeeze(-1));
    }
    return made.tokens;
  });
  return made;
}

at::Tensor Scorer::old_scores(const Sequences& batch) const {
  seed_dropout(kOld);
  return bench_.policy.roll_out(roll_out_->eval, [&](const Forward& module) {
    return scores(whole_logits(module, batch), roll_out_->temperature);
  });
}

at::Tensor Scorer::old(const Sequences& batch) const {
  const at::NoGradGuard no_grad;
  if (!roll_out_) {
    return Forward(bench_.policy.model(), bench_.run.program.loss).token_log_probs(batch);
  }
  const at::Tensor scores = old_scores(batch);
  if (!makes_mistake("shift")) return picked(scores, batch);
  const Sequences everywhere{batch.tokens, at::full_like(batch.completed, true)};
  const at::Tensor late = one_late(picked(scores, everywhere));
  return at::where(batch.completed, late, at::zeros_like(late));
}

at::Tensor Scorer::reference(const Decoder& model, const Sequences& batch) const {
  const at::NoGradGuard no_grad;
  const Forward forward(model, bench_.run.program.loss);
  if (!roll_out_) return forward.token_log_probs(batch);
  const at::Tensor whole = forward.logits(batch.tokens).narrow(1, 0, batch.completed.size(1));
  return picked(scores(whole, update_temperature()), batch);
}

Scorer::Made Scorer::make(const Forward& forward, const Sequences& batch) const {
  const at::Tensor whole =
      makes_mistake("packing") ? packed_logits(forward, batch) : whole_logits(forward, batch);
  const at::Tensor inside = scores(whole, update_temperature());
  const bool outside = roll_out_->log_softmax == "outside";
  const at::Tensor all = outside ? at::log_softmax(whole / update_temperature(), -1) : inside;
  const at::Tensor known = inside.detach();
  return {picked(all, batch), -(known.exp() * known).sum(-1)};
}

at::Tensor Scorer::fresh(const Forward& policy, const Sequences& batch) {
  if (!roll_out_) return policy.token_log_probs(batch);
  seed_dropout(kUpdate);
  made_ = make(policy, batch);
  return std::exchange(made_.log_probs, made_.log_probs.detach());
}

// minimind's line, of the tokens that count.
void Scorer::debug_log_ratio(const at::Tensor& difference, const Sequences& batch) const {
  const at::Tensor d = difference.masked_select(batch.completed);
  if (d.numel() == 0) return;
  const at::Tensor ratio = d.exp();
  const Decoder& model = bench_.policy.model();
  const auto number = [](const at::Tensor& x) { return x.item<double>(); };
  const std::string line = "[DBG log_ratio] step=" + std::to_string(bench_.journal.step()) +
                           " max|lr|=" + line_of("%.6e", number(d.abs().max())) +
                           " mean|lr|=" + line_of("%.6e", number(d.abs().mean())) +
                           " ratio_max=" + line_of("%.6f", number(ratio.max())) +
                           " ratio_min=" + line_of("%.6f", number(ratio.min())) +
                           " dropout=" + python_float(model.dropout()) +
                           " training=" + (model.training() ? "True" : "False");
  std::fprintf(stderr, "%s\n", line.c_str());
  note(bench_, line);
}

void Scorer::record(const Sequences& batch, const at::Tensor& old, const at::Tensor& reference,
                    std::int64_t updates) {
  if (!roll_out_) return;
  seed_dropout(kRepeat);
  const at::Tensor repeat = bench_.policy.roll_out(
      false, [&](const Forward& module) { return make(module, batch).log_probs; });
  const std::string source = "native " + bench_.run.program.trainer;
  record_log_probs({made_.log_probs, old, batch.completed, targets_of(batch.tokens), reference,
                    made_.entropy, repeat, updates == 0 ? sampled_ : at::Tensor()},
                   source, updates, bench_.run, bench_.journal);
  const bool asked = roll_out_->debug_log_ratio && bench_.run.rank == 0;
  if (!asked || updates > 0 || bench_.journal.micro() > 0) return;
  debug_log_ratio(made_.log_probs.to(at::kFloat) - old.to(at::kFloat), batch);
}

}  // namespace gradcheck::native
