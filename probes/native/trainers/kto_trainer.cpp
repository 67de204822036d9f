// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/kto_trainer.h"

#include <memory>
#include <stdexcept>

#include "probes/native/trainers/batch.h"
#include "probes/native/trainers/kto.h"

namespace gradcheck::native {
namespace {

// Spread of the reference model's noise against the policy: the two must differ, or every margin
// is zero at step 0.
constexpr double kReferenceNoise = 0.02;

class KtoTrainer {
 public:
  explicit KtoTrainer(const Bench& bench)
      : bench_(bench),
        reference_(bench.policy.model().perturbed_copy(kReferenceNoise, bench.run.seed + 1)) {
    if (bench.run.program.batch_size < 2) {
      throw std::invalid_argument(
          "KTO needs batch_size 2 or more: its KL term pairs each prompt "
          "with another sequence's completion");
    }
  }

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const PreferenceBatch batch = next_batch(step, micro);
    const KtoLogProbs reference = reference_log_probs(batch);
    bench_.journal.enter("forward");
    return bench_.policy.run([&](const SequenceLogProbs& policy) {
      KtoLogProbs all = reference;
      {
        const at::NoGradGuard no_grad;
        all.policy_kl = policy(batch.kl);
      }
      all.policy = policy(batch.sequences);
      return kto_loss(all, batch.desirable, kto_kl(all, gather()), options());
    });
  }

 private:
  PreferenceBatch next_batch(std::int64_t step, std::int64_t micro) {
    const bool same = bench_.run.program.data == "same";
    const BatchKey key{bench_.run.seed, same ? 0 : bench_.run.rank, step, micro};
    PreferenceBatch batch = make_preference_batch(key, bench_.run.program.batch_size,
                                                  bench_.policy.model().head().size(0));
    EventRecord event;
    event.type = EventType::batch;
    event.model = kPolicy;
    event.digest = digest_of(batch);
    bench_.journal.event(std::move(event));
    return batch;
  }

  KtoLogProbs reference_log_probs(const PreferenceBatch& batch) {
    bench_.journal.enter("reference");
    const at::NoGradGuard no_grad;
    KtoLogProbs out;
    out.reference = sequence_log_probs(bench_.run.program.loss, reference_, batch.sequences);
    out.reference_kl = sequence_log_probs(bench_.run.program.loss, reference_, batch.kl);
    return out;
  }

  std::function<at::Tensor(const at::Tensor&)> gather() const {
    const Fabric* fabric = bench_.fabric;
    return [fabric](const at::Tensor& own) { return fabric ? fabric->gather(own) : own; };
  }

  KtoOptions options() const {
    return {.desirable_weight = bench_.run.program.desirable_weight,
            .undesirable_weight = bench_.run.program.undesirable_weight};
  }

  Bench bench_;
  Qwen3 reference_;
};

}  // namespace

MicroLoss make_kto(const Bench& bench) {
  const auto trainer = std::make_shared<KtoTrainer>(bench);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace gradcheck::native
