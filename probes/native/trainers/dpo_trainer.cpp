// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/dpo_trainer.h"

#include <memory>
#include <utility>

#include "probes/native/snapshot/log_prob_file.h"
#include "probes/native/trainers/dpo.h"

namespace gradcheck::native {
namespace {

PairLogProbs split_pairs(const at::Tensor& policy, const at::Tensor& reference,
                         const Sequences& sequences) {
  const std::int64_t pairs = policy.size(0) / 2;
  const at::Tensor tokens = sequences.completed.sum(1).to(policy.scalar_type());
  const auto chosen = [pairs](const at::Tensor& rows) { return rows.narrow(0, 0, pairs); };
  const auto rejected = [pairs](const at::Tensor& rows) { return rows.narrow(0, pairs, pairs); };
  return {chosen(policy),
          rejected(policy),
          chosen(reference),
          rejected(reference),
          chosen(tokens),
          rejected(tokens),
          {}};
}

// Mean of all that was added, as RunningMoments in huggingface/trl; every rank adds its part of a
// batch before any of them is counted.
class RunningMean {
 public:
  at::Tensor add(const at::Tensor& mean_over_ranks) {
    ++count_;
    if (!mean_.defined()) return mean_ = mean_over_ranks;
    return mean_ = mean_ + (mean_over_ranks - mean_) / count_;
  }

 private:
  at::Tensor mean_;
  std::int64_t count_ = 0;  // batches, all of one size
};

class DpoTrainer {
 public:
  explicit DpoTrainer(const Bench& bench)
      : bench_(bench),
        reference_(make_reference(bench)),
        objectives_(objectives_of(bench.run.program)) {
    options_.label_smoothing = bench.run.program.label_smoothing;
  }

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const Sequences sequences = make_pairs(key_of(bench_.run, step, micro),
                                           bench_.run.program.batch_size, vocabulary(bench_));
    announce(bench_, digest_of(sequences));
    updates_ = step;
    const at::Tensor reference = reference_log_probs(bench_, reference_, sequences);
    bench_.journal.enter("forward");
    return bench_.policy.run([&](const Forward& policy) {
      if (bench_.run.program.loss == "fused") return fused(policy, reference, sequences);
      return plain(policy, reference, sequences);
    });
  }

 private:
  at::Tensor plain(const Forward& policy, const at::Tensor& reference, const Sequences& sequences) {
    const at::Tensor own = policy.sequence_log_probs(sequences);
    record(own, reference);
    PairLogProbs pairs = split_pairs(own, reference, sequences);
    if (uses("bco_pair")) {
      const at::Tensor reward = dpo_rewards(pairs, options_).mean();
      pairs.reward_mean = rewards_.add(gather_from(bench_, reward).mean());
    }
    return dpo_loss(objectives_, pairs, options_);
  }

  // DPO's ratio is to the reference. Where that is the policy itself, every margin is 0 and the
  // loss ln 2 before the first update: a row a sequence, one log-prob each.
  void record(const at::Tensor& policy, const at::Tensor& reference) const {
    if (bench_.run.program.reference != "equal") return;
    LogProbArrays arrays;
    arrays.fresh = policy.unsqueeze(1);
    arrays.old = reference.unsqueeze(1);
    arrays.mask = at::full({policy.size(0), 1}, true);
    record_log_probs(arrays, "native dpo", updates_, bench_.run, bench_.journal);
  }

  at::Tensor fused(const Forward& policy, const at::Tensor& reference,
                   const Sequences& sequences) const {
    const std::int64_t pairs = reference.size(0) / 2;
    std::vector<FusedChunk> chunks;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const at::Tensor rows = at::arange(pair, 2 * pairs, pairs, at::kLong);
      const at::Tensor own_reference = reference.index_select(0, rows);
      chunks.push_back({rows, [=, this](const at::Tensor& log_probs) {
                          const at::Tensor ratio = log_probs - own_reference;
                          const PairLogProbs one{ratio.narrow(0, 0, 1),
                                                 ratio.narrow(0, 1, 1),
                                                 at::zeros({1}),
                                                 at::zeros({1}),
                                                 {},
                                                 {},
                                                 {}};
                          return dpo_loss(objectives_, one, options_) / pairs;
                        }});
    }
    return policy.fused(sequences, std::move(chunks));
  }

  bool uses(std::string_view name) const {
    return std::ranges::find(objectives_, name, &Objective::name) != objectives_.end();
  }

  Bench bench_;
  Decoder reference_;
  std::vector<Objective> objectives_;
  DpoOptions options_;
  RunningMean rewards_;
  std::int64_t updates_ = 0;  // optimizer steps so far
};

}  // namespace

MicroLoss make_dpo(const Bench& bench) {
  const auto trainer = std::make_shared<DpoTrainer>(bench);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace gradcheck::native
