// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/grpo_trainer.h"

#include <map>
#include <memory>

#include "probes/native/trainers/grpo.h"

namespace gradcheck::native {
namespace {

constexpr std::int64_t kGroup = 2;

class GrpoTrainer {
 public:
  GrpoTrainer(const Bench& bench, bool turns)
      : bench_(bench),
        turns_(turns),
        reference_(make_reference(bench)),
        objectives_(objectives_of(bench.run.program)) {}

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const BatchKey key = key_of(bench_.run, step, micro);
    const Sequences sequences = draw(key);
    announce(bench_, digest_of(sequences));
    GrpoBatch batch = roll_out(sequences, step % bench_.run.program.epochs == 0, micro);
    batch.advantages = group_advantages(rewards(key, sequences.tokens.size(0)), kGroup);
    bench_.journal.enter("forward");
    return bench_.policy.run([&](const Forward& policy) {
      if (!sequences.completed.any().item<bool>()) return policy.logits(sequences.tokens).sum() * 0;
      batch.policy = policy.token_log_probs(sequences);
      return balanced(bench_, grpo_loss(objectives_, batch));
    });
  }

 private:
  Sequences draw(const BatchKey& key) const {
    const NativeProgram& program = bench_.run.program;
    Sequences sequences = make_groups(key, program.batch_size, kGroup, vocabulary(bench_));
    if (turns_) mask_tools(sequences);
    if (program.labels == "all_masked" && bench_.run.rank == 0) sequences.completed.fill_(false);
    return sequences;
  }

  // A tool answers between the model's turns.
  static void mask_tools(Sequences& sequences) {
    constexpr std::int64_t kFirst = 5, kTokens = 2;
    sequences.completed.narrow(1, kFirst, kTokens).fill_(false);
  }

  at::Tensor rewards(const BatchKey& key, std::int64_t size) const {
    const std::string& kind = bench_.run.program.rewards;
    const bool equal = kind == "equal" || (kind == "equal_on_rank_0" && bench_.run.rank == 0);
    return equal ? at::full({size}, 0.5) : draw_numbers(key, size);
  }

  // Everything but the policy's own log-probs, which the update computes.
  GrpoBatch roll_out(const Sequences& sequences, bool first_epoch, std::int64_t micro) {
    const at::NoGradGuard no_grad;
    const std::string& form = bench_.run.program.loss;
    GrpoBatch batch;
    if (first_epoch) {
      old_[micro] = Forward(bench_.policy.model(), form).token_log_probs(sequences);
    }
    batch.old = old_.at(micro);
    batch.reference = Forward(reference_, form).token_log_probs(sequences);
    batch.completed = sequences.completed;
    batch.longest = sequences.completed.size(1);
    const at::Tensor own = sequences.completed.sum().to(batch.old.scalar_type());
    batch.token_share = gather_from(bench_, own).mean();
    return batch;
  }

  Bench bench_;
  bool turns_;
  Decoder reference_;
  std::vector<Objective> objectives_;
  std::map<std::int64_t, at::Tensor> old_;  // log-probs of the last roll-out, by micro-step
};

MicroLoss make(const Bench& bench, bool turns) {
  const auto trainer = std::make_shared<GrpoTrainer>(bench, turns);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace

MicroLoss make_grpo(const Bench& bench) { return make(bench, false); }

MicroLoss make_agent(const Bench& bench) { return make(bench, true); }

}  // namespace gradcheck::native
