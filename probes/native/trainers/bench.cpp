// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/bench.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/native_parts.h"

namespace gradcheck::native {
namespace {

constexpr double kReferenceNoise = 0.02;

// A wider vocabulary must not change the data: arms of a scenario run on the same.
constexpr std::int64_t kTokens = 128;

}  // namespace

BatchKey key_of(const RunRecord& run, std::int64_t step, std::int64_t micro) {
  const bool same = run.program.data == "same";
  return {run.seed, same ? 0 : run.rank, step / run.program.epochs, micro};
}

std::int64_t vocabulary(const Bench& bench) {
  return std::min(bench.policy.model().config().vocab, kTokens);
}

void announce(const Bench& bench, std::string digest) {
  EventRecord event;
  event.type = EventType::batch;
  event.model = bench.policy.name();
  event.digest = std::move(digest);
  bench.journal.event(std::move(event));
}

at::Tensor gather_from(const Bench& bench, const at::Tensor& own) {
  return bench.fabric ? bench.fabric->gather(own) : own;
}

Decoder make_reference(const Bench& bench) {
  const double noise = bench.run.program.reference == "equal" ? 0 : kReferenceNoise;
  return bench.policy.perturbed_copy(noise, bench.run.seed + 1);
}

at::Tensor reference_log_probs(const Bench& bench, const Decoder& reference,
                               const Sequences& sequences) {
  bench.journal.enter("reference");
  const at::NoGradGuard no_grad;
  return Forward(reference, bench.run.program.loss).sequence_log_probs(sequences);
}

FusedReference fused_reference(const Bench& bench, const Decoder& reference,
                               const Sequences& sequences) {
  bench.journal.enter("reference");
  const at::NoGradGuard no_grad;
  return {reference.hidden(sequences.tokens), reference.head()};
}

at::Tensor balanced(const Bench& bench, const at::Tensor& loss) {
  const at::Tensor& balance = bench.policy.model().balance();
  return balance.defined() ? loss + balance * bench.run.program.balance_share : loss;
}

std::vector<Objective> objectives_of(const NativeProgram& program) {
  if (!program.objectives.empty()) return program.objectives;
  const std::string_view owner = trainer_of(native_trainers(), program.trainer);
  for (const NativePart& part : native_objectives()) {
    if (part.trainer == owner) return {{std::string(part.name), 1}};
  }
  return {};
}

}  // namespace gradcheck::native
