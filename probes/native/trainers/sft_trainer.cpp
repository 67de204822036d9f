// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/sft_trainer.h"

namespace gradcheck::native {
namespace {

Sequences next_batch(const Bench& bench, std::int64_t step, std::int64_t micro) {
  const NativeProgram& program = bench.run.program;
  Sequences batch =
      make_sequences(key_of(bench.run, step, micro), program.batch_size, vocabulary(bench));
  if (program.labels == "all_masked" && bench.run.rank == 0) batch.completed.fill_(false);
  announce(bench, digest_of(batch));
  return batch;
}

at::Tensor tokens_to_divide_by(const Bench& bench, const Sequences& batch) {
  const at::Tensor own = batch.completed.sum().to(at::kFloat);
  return bench.run.program.count_items ? gather_from(bench, own).mean() : own;
}

at::Tensor sft_loss(const Bench& bench, const Sequences& batch) {
  const at::Tensor tokens = tokens_to_divide_by(bench, batch);
  bench.journal.enter("forward");
  return bench.policy.run([&](const Forward& policy) {
    if (!batch.completed.any().item<bool>()) return policy.logits(batch.tokens).sum() * 0;
    return balanced(bench, -policy.token_log_probs(batch).sum() / tokens);
  });
}

}  // namespace

MicroLoss make_sft(const Bench& bench) {
  return [bench](std::int64_t step, std::int64_t micro) {
    return sft_loss(bench, next_batch(bench, step, micro));
  };
}

}  // namespace gradcheck::native
