// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/ppo_trainer.h"

#include <map>
#include <memory>

#include "probes/native/trainers/ppo.h"
#include "probes/native/trainers/scorer.h"

namespace gradcheck::native {
namespace {

constexpr double kReferenceShare = 0.02;
constexpr double kValueShare = 0.5;
constexpr double kLambda = 0.95;

// What the old policy and critic made of a batch; all [B, T−1].
struct Experience {
  Sequences sequences;
  at::Tensor log_probs;
  at::Tensor values;
  at::Tensor advantages;  // whitened
  at::Tensor returns;
};

at::Tensor before_next(const at::Tensor& values) { return values.narrow(1, 0, values.size(1) - 1); }

// The whole reward stands at the last token of a completion.
at::Tensor at_last_token(const at::Tensor& rewards, const at::Tensor& completed) {
  const at::Tensor counted = completed.to(rewards.scalar_type());
  const at::Tensor left = counted.flip(1).cumsum(1).flip(1);
  return left.eq(1).logical_and(completed) * rewards.unsqueeze(-1);
}

class PpoTrainer {
 public:
  explicit PpoTrainer(const Bench& bench)
      : bench_(bench), reference_(make_reference(bench)), scorer_(bench) {}

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const BatchKey key = key_of(bench_.run, step, micro);
    const Sequences batch = make_sequences(key, bench_.run.program.batch_size, vocabulary(bench_));
    announce(bench_, digest_of(batch));
    updates_ = step % bench_.run.program.epochs;
    if (updates_ == 0) experiences_[micro] = experience(key, batch);
    const Experience& old = experiences_.at(micro);
    bench_.journal.enter("forward");
    const at::Tensor actor = actor_loss(old.sequences, old);
    const at::Tensor critic = critic_loss(old.sequences, old);
    return (actor + critic) * keep_;
  }

 private:
  Experience experience(const BatchKey& key, const Sequences& made_up) {
    const at::NoGradGuard no_grad;
    Experience out;
    out.sequences = scorer_.complete(made_up);
    const Sequences& batch = out.sequences;
    out.log_probs = scorer_.old(batch);
    out.values = before_next(bench_.critic->model().values(batch.tokens));
    const at::Tensor rewards =
        at_last_token(draw_numbers(key, batch.tokens.size(0)), batch.completed);
    const at::Tensor raw = generalised_advantages(rewards, out.values, batch.completed, kLambda);
    out.returns = raw + out.values;
    out.advantages = whiten(raw, batch.completed);
    return out;
  }

  at::Tensor actor_loss(const Sequences& batch, const Experience& old) {
    const at::Tensor reference = scorer_.reference(reference_, batch);
    const at::Tensor loss = bench_.policy.run([&](const Forward& actor) {
      const at::Tensor now = scorer_.fresh(actor, batch);
      stop_early(old.log_probs - now.detach(), batch.completed);
      return clipped_surrogate(now, old.log_probs, old.advantages, batch.completed) +
             k3_to_reference(now, reference, batch.completed) * kReferenceShare;
    });
    scorer_.record(batch, old.log_probs, reference, updates_);
    return loss;
  }

  at::Tensor critic_loss(const Sequences& batch, const Experience& old) const {
    return bench_.critic->run([&](const Forward& critic) {
      const at::Tensor values = before_next(critic.values(batch.tokens));
      return value_loss(values, old.values, old.returns, batch.completed) * kValueShare;
    });
  }

  // Every rank gathers, whatever its own KL, and all come to the same answer.
  void stop_early(const at::Tensor& difference, const at::Tensor& completed) {
    const double limit = bench_.run.program.kl_limit;
    if (limit == 0) return;
    const at::Tensor kl = gather_from(bench_, masked_mean(difference.square(), completed) / 2);
    keep_ = kl.mean().item<double>() > limit ? 0 : 1;
  }

  Bench bench_;
  Decoder reference_;
  Scorer scorer_;
  std::map<std::int64_t, Experience> experiences_;  // by micro-step
  std::int64_t updates_ = 0;                        // since the experience was made
  double keep_ = 1;
};

}  // namespace

MicroLoss make_ppo(const Bench& bench) {
  const auto trainer = std::make_shared<PpoTrainer>(bench);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace gradcheck::native
