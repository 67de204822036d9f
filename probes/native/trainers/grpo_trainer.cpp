// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/grpo_trainer.h"

#include <map>
#include <memory>

#include "probes/native/trainers/grpo.h"
#include "probes/native/trainers/scorer.h"

namespace gradcheck::native {
namespace {

constexpr std::int64_t kGroup = 2;

class GrpoTrainer {
 public:
  GrpoTrainer(const Bench& bench, bool turns)
      : bench_(bench),
        turns_(turns),
        reference_(make_reference(bench)),
        objectives_(objectives_of(bench.run.program)),
        scorer_(bench) {}

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const BatchKey key = key_of(bench_.run, step, micro);
    const Sequences made_up = draw(key);
    announce(bench_, digest_of(made_up));
    const std::int64_t updates = step % bench_.run.program.epochs;
    if (updates == 0) roll_outs_[micro] = roll_out(made_up);
    const auto& [sequences, old] = roll_outs_.at(micro);
    GrpoBatch batch = prepare(sequences, old);
    batch.advantages = group_advantages(rewards(key, sequences.tokens.size(0)), kGroup);
    bench_.journal.enter("forward");
    const at::Tensor loss = bench_.policy.run([&](const Forward& policy) {
      if (!sequences.completed.any().item<bool>()) return policy.logits(sequences.tokens).sum() * 0;
      batch.policy = scorer_.fresh(policy, sequences);
      return grpo_loss(objectives_, batch);
    });
    scorer_.record(sequences, old, batch.reference, updates);
    return loss;
  }

 private:
  Sequences draw(const BatchKey& key) const {
    const NativeProgram& program = bench_.run.program;
    Sequences sequences = make_groups(key, program.batch_size, kGroup, vocabulary(bench_));
    if (turns_) mask_tools(sequences);
    if (program.labels == "all_masked" && bench_.run.rank == 0) sequences.completed.fill_(false);
    return sequences;
  }

  // A tool answers between the model's turns; every completion is at least that long.
  static constexpr std::int64_t kFirst = 5, kTokens = 2;
  static void mask_tools(Sequences& sequences) {
    sequences.completed.narrow(1, kFirst, kTokens).fill_(false);
  }
  static at::Tensor with_tools(const at::Tensor& completed) {
    at::Tensor all = completed.clone();
    all.narrow(1, kFirst, kTokens).fill_(true);
    return all;
  }

  at::Tensor rewards(const BatchKey& key, std::int64_t size) const {
    const std::string& kind = bench_.run.program.rewards;
    const bool equal = kind == "equal" || (kind == "equal_on_rank_0" && bench_.run.rank == 0);
    return equal ? at::full({size}, 0.5) : draw_numbers(key, size);
  }

  // Completions with the log-probs of the policy that made them.
  struct RolledOut {
    Sequences sequences;
    at::Tensor old;
  };

  RolledOut roll_out(const Sequences& made_up) {
    RolledOut made;
    made.sequences = scorer_.complete(made_up);
    made.old = scorer_.old(made.sequences);
    if (scorer_.makes_mistake("mask")) made.sequences.completed = with_tools(made_up.completed);
    return made;
  }

  // Everything but the policy's own log-probs, which the update computes.
  GrpoBatch prepare(const Sequences& sequences, const at::Tensor& old) const {
    const at::NoGradGuard no_grad;
    GrpoBatch batch;
    batch.old = old;
    batch.reference = scorer_.reference(reference_, sequences);
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
  Scorer scorer_;
  std::map<std::int64_t, RolledOut> roll_outs_;  // the last one, by micro-step
};

MicroLoss make(const Bench& bench, bool turns) {
  const auto trainer = std::make_shared<GrpoTrainer>(bench, turns);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace

MicroLoss make_grpo(const Bench& bench) { return make(bench, false); }

MicroLoss make_agent(const Bench& bench) { return make(bench, true); }

}  // namespace gradcheck::native
