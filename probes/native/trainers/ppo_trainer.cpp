// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/ppo_trainer.h"

#include <map>
#include <memory>

#include "probes/native/trainers/ppo.h"

namespace gradcheck::native {
namespace {

constexpr double kReferenceShare = 0.02;
constexpr double kValueShare = 0.5;
constexpr double kLambda = 0.95;

// What the old policy and critic made of a batch; all [B, T−1].
struct RollOut {
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
  explicit PpoTrainer(const Bench& bench) : bench_(bench), reference_(make_reference(bench)) {}

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const BatchKey key = key_of(bench_.run, step, micro);
    const Sequences batch = make_sequences(key, bench_.run.program.batch_size, vocabulary(bench_));
    announce(bench_, digest_of(batch));
    if (step % bench_.run.program.epochs == 0) roll_outs_[micro] = roll_out(key, batch);
    const RollOut& old = roll_outs_.at(micro);
    bench_.journal.enter("forward");
    const at::Tensor actor = actor_loss(batch, old);
    const at::Tensor critic = critic_loss(batch, old);
    return (actor + critic) * keep_;
  }

 private:
  RollOut roll_out(const BatchKey& key, const Sequences& batch) const {
    const at::NoGradGuard no_grad;
    const Forward actor(bench_.policy.model(), bench_.run.program.loss);
    RollOut out;
    out.log_probs = actor.token_log_probs(batch);
    out.values = before_next(bench_.critic->model().values(batch.tokens));
    const at::Tensor rewards =
        at_last_token(draw_numbers(key, batch.tokens.size(0)), batch.completed);
    const at::Tensor raw = generalised_advantages(rewards, out.values, batch.completed, kLambda);
    out.returns = raw + out.values;
    out.advantages = whiten(raw, batch.completed);
    return out;
  }

  at::Tensor actor_loss(const Sequences& batch, const RollOut& old) {
    at::Tensor reference;
    {
      const at::NoGradGuard no_grad;
      reference = Forward(reference_, bench_.run.program.loss).token_log_probs(batch);
    }
    return bench_.policy.run([&](const Forward& actor) {
      const at::Tensor now = actor.token_log_probs(batch);
      stop_early(old.log_probs - now.detach(), batch.completed);
      return balanced(bench_,
                      clipped_surrogate(now, old.log_probs, old.advantages, batch.completed) +
                          k3_to_reference(now, reference, batch.completed) * kReferenceShare);
    });
  }

  at::Tensor critic_loss(const Sequences& batch, const RollOut& old) const {
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
  std::map<std::int64_t, RollOut> roll_outs_;  // by micro-step
  double keep_ = 1;
};

}  // namespace

MicroLoss make_ppo(const Bench& bench) {
  const auto trainer = std::make_shared<PpoTrainer>(bench);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace gradcheck::native
