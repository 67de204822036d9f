// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/critic_trainer.h"

#include "probes/native/trainers/ppo.h"

namespace gradcheck::native {
namespace {

// Where the token that a value stands before belongs to a completion.
at::Tensor before_next(const at::Tensor& values) { return values.narrow(1, 0, values.size(1) - 1); }

at::Tensor critic_loss(const Bench& bench, const BatchKey& key) {
  const Sequences batch = make_sequences(key, bench.run.program.batch_size, vocabulary(bench));
  announce(bench, digest_of(batch));
  at::Tensor old_values;
  {
    const at::NoGradGuard no_grad;
    old_values = before_next(bench.policy.model().values(batch.tokens));
  }
  const at::Tensor returns = draw_numbers(key, batch.completed.numel()).view_as(batch.completed);
  bench.journal.enter("forward");
  return bench.policy.run([&](const Forward& critic) {
    return value_loss(before_next(critic.values(batch.tokens)), old_values, returns,
                      batch.completed);
  });
}

}  // namespace

MicroLoss make_critic(const Bench& bench) {
  return [bench](std::int64_t step, std::int64_t micro) {
    return critic_loss(bench, key_of(bench.run, step, micro));
  };
}

}  // namespace gradcheck::native
