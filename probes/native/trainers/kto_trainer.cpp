// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/kto_trainer.h"

#include <memory>
#include <stdexcept>
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
        objectives_(objectives_of(bench.run.program)) {
    if (bench.run.program.batch_size < 2) {
      throw std::invalid_argument(
          "KTO needs batch_size 2 or more: its KL term pairs each prompt "
          "with another sequence's completion");
    }
  }

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const PreferenceBatch batch = next_batch(step, micro);
    const bool fused = bench_.run.program.loss == "fused";
    KtoLogProbs all;
    FusedReference reference;
    if (fused) reference = fused_reference(bench_, reference_, batch.sequences);
    if (!fused) all.reference = reference_log_probs(bench_, reference_, batch.sequences);
    all.reference_kl = reference_log_probs(bench_, reference_, batch.kl);
    bench_.journal.enter("forward");
    return bench_.policy.run([&](const Forward& policy) {
      {
        const at::NoGradGuard no_grad;
        all.policy_kl = policy.sequence_log_probs(batch.kl);
      }
      const at::Tensor kl =
          kto_kl(all, [this](const at::Tensor& own) { return gather_from(bench_, own); });
      if (fused) return policy.fused(batch.sequences, reference, chunks(batch.desirable, kl));
      all.policy = policy.sequence_log_probs(batch.sequences);
      return weighted(all, batch.desirable, kl);
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

  at::Tensor weighted(const KtoLogProbs& all, const at::Tensor& desirable,
                      const at::Tensor& kl) const {
    at::Tensor total = at::zeros({}, all.policy.options());
    for (const Objective& objective : objectives_) {
      total = total + kto_loss(objective.name, all, desirable, kl, options()) * objective.weight;
    }
    return total;
  }

  // One sequence a chunk: Σ loss / B is the mean over the batch.
  std::vector<FusedChunk> chunks(const at::Tensor& desirable, const at::Tensor& kl) const {
    const std::int64_t size = desirable.size(0);
    const double share = objectives_.front().weight / static_cast<double>(size);
    std::vector<FusedChunk> made;
    for (std::int64_t row = 0; row < size; ++row) {
      const double sign = desirable[row].item<bool>() ? 1 : -1;
      made.push_back({at::full({1}, row, at::kLong),
                      [=, this](const at::Tensor& policy, const at::Tensor& reference) {
                        const at::Tensor margin = (policy - reference - kl) * options().beta;
                        return (1 - (margin * sign).sigmoid()).sum() * share;
                      }});
    }
    return made;
  }

  KtoOptions options() const {
    return {.desirable_weight = bench_.run.program.desirable_weight,
            .undesirable_weight = bench_.run.program.undesirable_weight};
  }

  Bench bench_;
  Decoder reference_;
  std::vector<Objective> objectives_;
};

}  // namespace

MicroLoss make_kto(const Bench& bench) {
  const auto trainer = std::make_shared<KtoTrainer>(bench);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace gradcheck::native
