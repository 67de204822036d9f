// SPDX-License-Identifier: Apache-2.0
#include "model/native_parts.h"

#include <algorithm>
#include <iterator>

namespace gradcheck {
namespace {

constexpr NativePart of_trainer(std::string_view trainer, std::string_view name,
                                std::string_view summary) {
  return {name, summary, FaultNeeds::nothing, trainer};
}

constexpr NativePart kModels[] = {
    {"qwen3_0_6b", "Qwen3-0.6B topology, tied head: 310 tensors; widths shrunk"},
    {"qwen3_tiny_untied", "two Qwen3 layers, untied head: 25 tensors"},
    {"qwen2_tiny_untied", "two Qwen2 layers, biases and no q/k norm, untied head: 27 tensors"},
    {"minimind", "minimind's dense model, tied head: 90 tensors"},
    {"minimind_real_tables", "the same with rotary tables of the original's size, 25.2 MB"},
    {"minimind_untied", "minimind's dense model with a head of its own: 91 tensors"},
    of_trainer("critic", "minimind_critic", "minimind's critic, tied head: 92 tensors"),
    of_trainer("critic", "minimind_critic_untied",
               "minimind's critic with a head that no loss uses: 93 tensors"),
    {"minimind_moe", "minimind with four experts a layer, one a token: 170 tensors"},
    {"minimind_lora", "minimind with adapters on its square projections: 32 trainable tensors"},
};
constexpr NativePart kTrainers[] = {
    of_trainer("kto", "kto",
               "KTO: reference log-probs, KL term gathered over ranks, class weights"),
    of_trainer("dpo", "dpo",
               "DPO: chosen and rejected rows, reference log-probs, weighted objectives"),
    {"critic", "value regression, the critic's half of PPO alone"},
    {"sft", "cross-entropy over completion tokens, with or without a count over all ranks"},
    of_trainer("grpo", "grpo",
               "GRPO: advantages within groups, old and reference log-probs, weighted objectives"),
    of_trainer("grpo", "agent", "GRPO over conversations of several turns, tool tokens masked"),
    {"ppo", "PPO: actor and critic in one backward, roll-outs reused over epochs"},
    {"distillation", "cross-entropy and softened KL to a frozen teacher"},
    {"gkd", "generalised Jensen-Shannon divergence to a frozen teacher"},
};
constexpr NativePart kLosses[] = {
    {"chunked", "log-probs by vocabulary tiles, recomputed in backward"},
    {"dense", "log-probs from whole logits"},
    {"fused", "gradients of hidden states and head computed inside the forward, by functorch"},
};
// A trainer's first objective is its default.
constexpr NativePart kObjectives[] = {
    of_trainer("kto", "kto", "w (1 - sigmoid(+-beta (r - kl)))"),
    of_trainer("kto", "apo_zero_unpaired", "desirable 1 - sigmoid(beta r), undesirable its mirror"),
    of_trainer("dpo", "sigmoid", "-log sigmoid(beta margin), smoothed labels"),
    of_trainer("dpo", "hinge", "max(0, 1 - beta margin)"),
    of_trainer("dpo", "ipo", "(margin of means over tokens - 1 / (2 beta))^2"),
    of_trainer("dpo", "robust", "sigmoid, corrected for flipped labels"),
    of_trainer("dpo", "exo_pair", "reverse KL to the smoothed preference"),
    of_trainer("dpo", "nca_pair", "noise contrastive alignment of pairs"),
    of_trainer("dpo", "bco_pair", "binary classifier around the running mean reward"),
    of_trainer("dpo", "sppo_hard", "squared distance of the ratios to +-1 / (2 beta)"),
    of_trainer("dpo", "aot", "sigmoid of sorted policy against sorted reference ratios"),
    of_trainer("dpo", "aot_unpaired", "sigmoid of sorted chosen against sorted rejected ratios"),
    of_trainer("dpo", "apo_zero", "chosen up, rejected down, each anchored at zero"),
    of_trainer("dpo", "apo_down", "chosen down, rejected further down"),
    of_trainer("dpo", "discopop", "logistic and exponential loss, mixed by the margin"),
    of_trainer("dpo", "sft", "negative log-likelihood of the chosen tokens"),
    of_trainer("dpo", "sigmoid_norm", "sigmoid of means over tokens"),
    of_trainer("grpo", "dapo", "clipped ratios over the tokens of all ranks"),
    of_trainer("grpo", "grpo", "clipped ratios, mean of sequence means"),
    of_trainer("grpo", "bnpo", "clipped ratios, mean over this rank's tokens"),
    of_trainer("grpo", "dr_grpo", "clipped ratios over the longest possible batch"),
    of_trainer("grpo", "cispo", "log-probs weighted by detached, bounded ratios"),
    of_trainer("grpo", "sapo", "ratios through a soft gate"),
    of_trainer("grpo", "vespo", "log-probs weighted by a detached sequence weight"),
    of_trainer("grpo", "luspo", "clipped sequence ratios, times length"),
    of_trainer("grpo", "k3", "no loss of its own: its weight is beta of a KL to the reference"),
};
constexpr NativePart kWrappers[] = {
    {"none", "no wrapper"},
    {"ddp", "DistributedDataParallel's order of operations on c10d::Reducer"},
    {"zero2", "DeepSpeed's ZeRO-2, modelled: gradients are reduce-scattered from hooks"},
    {"zero3", "DeepSpeed's ZeRO-3, modelled: parameters have no elements between uses"},
    {"fsdp1", "FullyShardedDataParallel, modelled: a flat parameter a unit, sharded"},
    {"fsdp2", "fully_shard, modelled: the module itself, its parameters sharded by rows"},
};
constexpr NativePart kPaths[] = {
    {"wrapped", "the wrapper's forward returns logits, the loss is computed outside"},
    {"redirected", "the loss is computed inside the wrapper's forward"},
    {"hidden_states", "the wrapper's forward returns hidden states, head and loss outside"},
    {"unwrapped", "the loss is computed on the inner module, past the wrapper"},
    {"no_grad_first", "unwrapped, after a wrapped forward without gradients"},
    {"stray_arm", "unwrapped, after a wrapped forward whose output is dropped"},
    {"wrapped_twice", "wrapped, two forwards before one backward"},
    {"direct", "there is no wrapper to go through"},
};
constexpr NativePart kGuards[] = {
    {"old", "redirects under ZeRO-3 and FSDP"},
    {"identity", "redirects where the model is not the unwrapped one, under ZeRO-3 and FSDP"},
    {"final", "redirects where the model is not the unwrapped one, and under FSDP"},
    {"always", "redirects whatever it sees"},
    {"never", "never redirects"},
    {"identity_without_fsdp", "redirects where the model is not the unwrapped one"},
};
constexpr NativePart kBackends[] = {
    {"gloo", "Gloo on CPU"},
    {"nccl", "NCCL; needs a CUDA device and a LibTorch with NCCL"},
};
constexpr NativePart kDTypes[] = {
    {"fp32", "32-bit parameters and gradients"},
    {"bf16", "bfloat16 parameters and gradients"},
};
constexpr NativePart kData[] = {
    {"per_rank", "every rank has its own batch"},
    {"same", "every rank has rank 0's batch"},
};
constexpr NativePart kLabels[] = {
    {"mixed", "every rank has both kinds"},
    {"one_sided", "rank 0 has desirable sequences only"},
    {"all_masked", "rank 0 has no completion token"},
};
constexpr NativePart kRewards[] = {
    {"distinct", "every completion has its own reward"},
    {"equal", "all of a group have the same reward: no advantage anywhere"},
    {"equal_on_rank_0", "rank 0's groups have no advantage"},
};
constexpr NativePart kReferences[] = {
    {"noisy", "the policy's first weights with noise on them"},
    {"equal", "the policy's first weights"},
};
constexpr NativePart kAutocast[] = {
    {"none", "no autocast"},
    {"bf16", "LibTorch's autocast in bfloat16, log_softmax as CUDA's policy has it"},
    {"fp16", "logits rounded to half precision"},
};
constexpr NativePart kLogSoftmax[] = {
    {"inside", "in the region, whose policy makes it float32"},
    {"outside", "after the region, in the type of the logits"},
};
constexpr NativePart kMistakes[] = {
    {"none", "old and new are made alike"},
    {"temperature", "the update forgets the temperature that was sampled at"},
    {"shift", "old stands one token late"},
    {"packing", "the update packs two sequences into a row and attends across their border"},
    of_trainer("agent", "mask", "tokens of tools count, to which the roll-out gave 0"),
};
constexpr NativePart kIdleExpert[] = {
    {"never", "tokens go where the router sends them"},
    {"on_rank_1", "rank 1 sends no token to expert 0"},
    {"always", "no rank sends a token to expert 0"},
};
constexpr NativePart kNoSync[] = {
    {"none", "every micro-step is synchronised"},
    {"all_but_last", "only the last micro-step is synchronised"},
    {"all_but_whole", "only the last one of a whole window is: a remainder never"},
    {"all", "no micro-step is synchronised"},
};
constexpr NativePart kHooks[] = {
    {"none", "the reducer's own mean"},
    {"allreduce", "LibTorch's all-reduce hook"},
    {"fp16_compress", "LibTorch's hook that reduces in half precision"},
    {"sum", "a hook that sums and forgets to divide"},
    {"power_sgd", "matrices as reduced factors of low rank: equal on all ranks, not the mean"},
    {"power_sgd_unreduced", "the same, but the factors are not reduced"},
};
constexpr NativePart kFaultKinds[] = {
    {"raise", "throws an exception", FaultNeeds::phase},
    {"kill", "SIGKILL to itself", FaultNeeds::phase},
    {"hang", "stops for ever", FaultNeeds::phase},
    {"exit", "exit status 0 without saying goodbye", FaultNeeds::phase},
    {"skip_hook", "does not record the local gradient of `tensor`", FaultNeeds::tensor},
    {"skip_mark", "does not close the stage named by `tensor`", FaultNeeds::stage},
    {"skip_reduction", "the reduction does nothing from `step` on"},
    {"corrupt_reduction", "the reduction forgets the contribution of `rank`"},
    {"corrupt_shard", "the part of a reduce-scatter that `rank` owns is not divided"},
    {"overflow", "makes the loss infinite in `step`, as half precision would"},
    {"keep_gradients", "does not clear its gradients after a step, from `step` on"},
    {"corrupt_buffer", "adds one half to the buffers that `tensor` matches, before `step`",
     FaultNeeds::tensor},
};
constexpr NativePart kFaultPhases[] = {
    {"rendezvous", "before the process group is made"},
    {"construct", "while model and wrapper are made"},
    {"forward", "in the policy forward"},
    {"backward", "in the backward"},
    {"optimizer", "before the optimizer step"},
};

}  // namespace

std::span<const NativePart> native_models() { return kModels; }
std::span<const NativePart> native_trainers() { return kTrainers; }
std::span<const NativePart> native_losses() { return kLosses; }
std::span<const NativePart> native_objectives() { return kObjectives; }
std::span<const NativePart> native_wrappers() { return kWrappers; }
std::span<const NativePart> native_paths() { return kPaths; }
std::span<const NativePart> native_guards() { return kGuards; }
std::span<const NativePart> native_backends() { return kBackends; }
std::span<const NativePart> native_dtypes() { return kDTypes; }
std::span<const NativePart> native_data() { return kData; }
std::span<const NativePart> native_labels() { return kLabels; }
std::span<const NativePart> native_rewards() { return kRewards; }
std::span<const NativePart> native_references() { return kReferences; }
std::span<const NativePart> native_autocast() { return kAutocast; }
std::span<const NativePart> native_log_softmax() { return kLogSoftmax; }
std::span<const NativePart> native_mistakes() { return kMistakes; }
std::span<const NativePart> native_idle_expert() { return kIdleExpert; }
std::span<const NativePart> native_no_sync() { return kNoSync; }
std::span<const NativePart> native_hooks() { return kHooks; }
std::span<const NativePart> fault_kinds() { return kFaultKinds; }
std::span<const NativePart> fault_phases() { return kFaultPhases; }

bool contains(std::span<const NativePart> parts, std::string_view name) {
  return std::ranges::find(parts, name, &NativePart::name) != parts.end();
}

FaultNeeds needs_of_fault(std::string_view kind) {
  const auto* found = std::ranges::find(kFaultKinds, kind, &NativePart::name);
  return found == std::end(kFaultKinds) ? FaultNeeds::nothing : found->needs;
}

bool is_sharding(std::string_view wrapper) { return wrapper != "none" && wrapper != "ddp"; }

std::string_view default_path(std::string_view wrapper, std::string_view loss) {
  if (wrapper == "none") return "direct";
  return loss == "dense" ? "wrapped" : "redirected";
}

std::string_view trainer_of(std::span<const NativePart> parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &NativePart::name);
  return found == parts.end() ? "" : found->trainer;
}

}  // namespace gradcheck
