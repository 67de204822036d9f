// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/kto_trainer.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "probes/native/trainers/kto.h"

namespace gradcheck::native {
namespace {

class KtoTrainer {
 public:
  explicit KtoTrainer(const Bench& bench)
      : bench_(bench),
        reference_(make_reference(bench)),
        objective_(objectives_of(bench.run.program).front().name) {
    if (bench.run.program.batch_size < 2) {
      throw std::invalid_argument(
          "KTO needs batch_size 2 or more: its KL term pairs each prompt "
          "with another sequence's completion");
    }
  }

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const PreferenceBatch batch = next_batch(step, micro);
    KtoLogProbs all;
    all.reference = reference_log_probs(bench_, reference_, batch.sequences);
    all.reference_kl = reference_log_probs(bench_, reference_, batch.kl);
    bench_.journal.enter("forward");
    return bench_.policy.run([&](const Forward& policy) {
      {
        const at::NoGradGuard no_grad;
        all.policy_kl = policy.sequence_log_probs(batch.kl);
      }
      const at::Tensor kl =
          kto_kl(all, [this](const at::Tensor& own) { return gather_from(bench_, own); });
      if (bench_.run.program.loss == "fused") return fused(policy, all, batch, kl);
      all.policy = policy.sequence_log_probs(batch.sequences);
      return kto_loss(objective_, all, batch.desirable, kl, options());
    });
  }

 private:
  PreferenceBatch next_batch(std::int64_t step, std::int64_t micro) {
    PreferenceBatch batch = make_preference_batch(
        key_of(bench_.run, step, micro), bench_.run.program.batch_size, vocabulary(bench_));
    if (bench_.run.program.labels == "one_sided" && bench_.run.rank == 0) {
      batch.desirable.fill_(true);
    }
    announce(bench_, digest_of(batch));
    return batch;
  }

  // One sequence a chunk: Σ loss / B is the mean over the batch.
  at::Tensor fused(const Forward& policy, const KtoLogProbs& all, const PreferenceBatch& batch,
                   const at::Tensor& kl) const {
    const std::int64_t size = batch.desirable.size(0);
    std::vector<FusedChunk> chunks;
    for (std::int64_t row = 0; row < size; ++row) {
      const at::Tensor rows = at::full({1}, row, at::kLong);
      const at::Tensor reference = all.reference.index_select(0, rows);
      const double sign = batch.desirable[row].item<bool>() ? 1 : -1;
      chunks.push_back({rows, [=, this](const at::Tensor& log_probs) {
                          const at::Tensor margin = (log_probs - reference - kl) * options().beta;
                          return (1 - (margin * sign).sigmoid()).sum() / size;
                        }});
    }
    return policy.fused(batch.sequences, std::move(chunks));
  }

  KtoOptions options() const {
    return {.desirable_weight = bench_.run.program.desirable_weight,
            .undesirable_weight = bench_.run.program.undesirable_weight};
  }

  Bench bench_;
  Decoder reference_;
  std::string objective_;
};

}  // namespace

MicroLoss make_kto(const Bench& bench) {
  const auto trainer = std::make_shared<KtoTrainer>(bench);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace gradcheck::native
