// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/distillation_trainer.h"

#include <memory>

#include "probes/native/losses/log_probs.h"
#include "probes/native/trainers/distillation.h"

namespace gradcheck::native {
namespace {

constexpr double kAlpha = 0.5;        // share of the cross-entropy
constexpr double kTemperature = 1.5;  // minimind's default
constexpr double kBeta = 0.5;         // GKD's default

// [N, V]: logits of the N positions before completion tokens.
at::Tensor before_completions(const at::Tensor& logits, const Sequences& batch) {
  const at::Tensor shifted = logits.narrow(1, 0, logits.size(1) - 1);
  const at::Tensor rows = batch.completed.reshape(-1).nonzero().squeeze(1);
  return shifted.reshape({-1, logits.size(-1)}).index_select(0, rows).to(at::kFloat);
}

at::Tensor targets_of(const Sequences& batch) {
  const at::Tensor next = batch.tokens.narrow(1, 1, batch.tokens.size(1) - 1);
  return next.masked_select(batch.completed);
}

using Distance = at::Tensor (*)(const at::Tensor& student, const at::Tensor& teacher,
                                const at::Tensor& targets);

at::Tensor distillation(const at::Tensor& student, const at::Tensor& teacher,
                        const at::Tensor& targets) {
  const at::Tensor cross_entropy = -log_probs_from_logits(student, targets).mean();
  return cross_entropy * kAlpha + softened_kl(student, teacher, kTemperature) * (1 - kAlpha);
}

at::Tensor gkd(const at::Tensor& student, const at::Tensor& teacher, const at::Tensor&) {
  return generalised_jsd(student, teacher, kBeta);
}

class Distiller {
 public:
  Distiller(const Bench& bench, Distance distance)
      : bench_(bench), distance_(distance), teacher_(make_reference(bench)) {}

  at::Tensor loss(std::int64_t step, std::int64_t micro) {
    const Sequences batch = make_sequences(key_of(bench_.run, step, micro),
                                           bench_.run.program.batch_size, vocabulary(bench_));
    announce(bench_, digest_of(batch));
    at::Tensor teacher;
    {
      const at::NoGradGuard no_grad;
      teacher = before_completions(teacher_.logits(batch.tokens), batch);
    }
    bench_.journal.enter("forward");
    return bench_.policy.run([&](const Forward& student) {
      const at::Tensor logits = before_completions(student.logits(batch.tokens), batch);
      return distance_(logits, teacher, targets_of(batch));
    });
  }

 private:
  Bench bench_;
  Distance distance_;
  Decoder teacher_;
};

MicroLoss make(const Bench& bench, Distance distance) {
  const auto trainer = std::make_shared<Distiller>(bench, distance);
  return [trainer](std::int64_t step, std::int64_t micro) { return trainer->loss(step, micro); };
}

}  // namespace

MicroLoss make_distillation(const Bench& bench) { return make(bench, distillation); }

MicroLoss make_gkd(const Bench& bench) { return make(bench, gkd); }

}  // namespace gradcheck::native
