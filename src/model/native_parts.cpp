// SPDX-License-Identifier: Apache-2.0
#include "model/native_parts.h"

#include <algorithm>
#include <iterator>

namespace gradcheck {
namespace {

constexpr NativePart kModels[] = {
    {"qwen3_0_6b", "Qwen3-0.6B topology, tied head: 310 tensors; widths shrunk"},
    {"qwen3_tiny_untied", "two Qwen3 layers, untied head: 25 tensors"},
};
constexpr NativePart kTrainers[] = {
    {"kto", "KTO: reference log-probs, KL term gathered over ranks, class weights"},
};
constexpr NativePart kLosses[] = {
    {"chunked", "log-probs by vocabulary tiles, recomputed in backward"},
    {"dense", "log-probs from whole logits"},
};
constexpr NativePart kWrappers[] = {
    {"none", "no wrapper"},
    {"ddp", "DistributedDataParallel's order of operations on c10d::Reducer"},
};
constexpr NativePart kPaths[] = {
    {"wrapped", "the wrapper's forward returns logits, the loss is computed outside"},
    {"redirected", "the loss is computed inside the wrapper's forward"},
    {"unwrapped", "the loss is computed on the inner module, past the wrapper"},
    {"direct", "there is no wrapper to go through"},
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
constexpr NativePart kNoSync[] = {
    {"none", "every micro-step is synchronised"},
    {"all_but_last", "only the last micro-step is synchronised"},
    {"all", "no micro-step is synchronised"},
};
constexpr NativePart kHooks[] = {
    {"none", "the reducer's own mean"},
    {"sum", "a hook that sums and forgets to divide"},
};
constexpr NativePart kFaultKinds[] = {
    {"raise", "throws an exception", FaultNeeds::phase},
    {"kill", "SIGKILL to itself", FaultNeeds::phase},
    {"hang", "stops for ever", FaultNeeds::phase},
    {"exit", "exit status 0 without saying goodbye", FaultNeeds::phase},
    {"skip_hook", "does not record the local gradient of `tensor`", FaultNeeds::tensor},
    {"skip_mark", "does not close the stage named by `tensor`", FaultNeeds::stage},
    {"skip_reduction", "all-reduce does nothing from `step` on"},
    {"corrupt_reduction", "all-reduce forgets the contribution of `rank`"},
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
std::span<const NativePart> native_wrappers() { return kWrappers; }
std::span<const NativePart> native_paths() { return kPaths; }
std::span<const NativePart> native_backends() { return kBackends; }
std::span<const NativePart> native_dtypes() { return kDTypes; }
std::span<const NativePart> native_data() { return kData; }
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

std::string_view default_path(std::string_view wrapper, std::string_view loss) {
  if (wrapper == "none") return "direct";
  return loss == "dense" ? "wrapped" : "redirected";
}

std::string misfit_of_path(std::string_view path, std::string_view wrapper, std::string_view loss) {
  const bool has_wrapper = wrapper != "none";
  const std::string subject = "path \"" + std::string(path) + "\" ";
  if (has_wrapper == (path == "direct")) {
    return subject + (has_wrapper ? "means no wrapper" : "needs a wrapper");
  }
  if (path != "wrapped" || loss == "dense") return "";
  return subject + "returns logits; loss \"" + std::string(loss) +
         "\" needs hidden states: use \"redirected\" or \"unwrapped\"";
}

}  // namespace gradcheck
