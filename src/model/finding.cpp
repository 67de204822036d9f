// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/names.h"

namespace gradcheck {
namespace {

using enum Severity;

constexpr CodeInfo kCodes[] = {
    {101, error, "gradients differ across ranks",
     "Read the causes; they say where the ranks parted."},
    {102, error, "gradients present on some ranks only",
     "Make every rank use the same parameters in a step, or set find_unused_parameters."},
    {103, error, "shape or dtype differs across ranks",
     "Build the same model on every rank; compare the configurations."},
    {104, error, "equal where each rank should differ",
     "Check what was declared rank-local: something makes it equal."},
    {105, error, "tensors differ from the reference",
     "Run both with the same seed, data and kernels; --tolerance says how close is close enough."},
    {201, error, "gradients were not reduced",
     "Compute the loss through the wrapper's forward, not on the inner module."},
    {202, error, "some gradients were not reduced",
     "Find out how the named tensors escape the wrapper: added, replaced or ignored."},
    {203, error, "some micro-steps were not reduced",
     "Keep forward and backward of the last micro-step outside no_sync."},
    {204, error, "gradients are scaled by a factor",
     "Divide by the world size exactly once; check hooks, loss scaling and accumulation."},
    {205, error, "ranks are weighted unlike declared",
     "Normalise the loss over all ranks, or declare the weights in the plan."},
    {206, error, "gradients were reduced over a sub-group",
     "Give the wrapper the process group of all data-parallel ranks."},
    {207, error, "a rank's gradient is missing from the reduction",
     "Look at the named rank: its contribution reached nobody."},
    {208, error, "the reduction made non-finite values",
     "Reduce in a wider type or scale the gradients down before the reduction."},
    {209, error, "the reduced gradient is not the declared reduction",
     "Confirm the plan, then compare the worst tensor's elements with the locals."},
    {210, warning, "a gradient was carried over from an earlier step",
     "Clear the gradients between optimizer steps."},
    {211, error, "a micro-step was counted more than once",
     "Reduce an accumulated gradient once, after its last micro-step."},
    {212, warning, "gradients were reduced by a stray arm",
     "Use the output of every wrapper forward that runs with gradients on."},
    {301, error, "parameters differ at the start",
     "Broadcast the parameters from one rank before training."},
    {302, error, "parameters differ after the step",
     "Repair the gradients first; then check that optimizers share their settings."},
    {303, error, "trainable parameters did not move",
     "Check that the optimizer owns the named parameters and that the step ran."},
    {304, error, "frozen parameters moved",
     "Take the named parameters out of the optimizer, or of the plan's frozen list."},
    {401, error, "buffers differ where declared equal",
     "Switch buffer broadcasting on, or compute the buffers alike on every rank."},
    {402, note, "buffers are broadcast at every forward",
     "Switch buffer broadcasting off if the buffers are constant."},
    {403, note, "undeclared buffers differ",
     "Declare the buffers in the plan to have them judged."},
    {501, error, "new and old log-probs differ",
     "Read the causes; --regime and --dtype choose the limits."},
    {502, error, "a side is in low precision", "Compute both log-probs from float() logits."},
    {503, error, "values are no log-probs",
     "Look at the named tokens' logits; the step is worthless until they are right."},
    {504, error, "log-probs stand at other tokens", "Match tokens by row and id before comparing."},
    {505, error, "missing log-probs stand as 0.0",
     "Make the engine return a log-prob for every token, or mask the named ones."},
    {506, error, "the mean ratio is not 1",
     "Find out which distribution the tokens were really sampled from."},
    {507, error, "one rank's log-probs differ more than the others'",
     "Look at the named rank's engine and weights."},
    {508, error, "a repeated forward gives other log-probs",
     "Switch dropout off and ask for deterministic kernels."},
    {590, note, "two precisions seen at two call sites",
     "Compute both log-probs from float() logits, or know why they differ."},
    {601, error, "ranks were given the same data",
     "Give every data-parallel rank its own batches (a distributed sampler)."},
    {602, error, "every gradient was zero",
     "Use data and weights for which the loss has a gradient."},
    {603, error, "local gradients were not recorded",
     "Find out why the hooks of the named tensors did not fire."},
    {604, error, "nothing was compared", "Check that the program ran a backward through a model."},
    {605, error, "the log-prob test does not apply", "Record old log-probs of their own."},
    {606, error, "undeclared tensors differ", "Declare the named tensors in the plan."},
    {607, error, "too few tokens to judge", "Gather more sequences, as many as the message names."},
    {701, error, "gradients are not finite",
     "Look at the named rank's loss and inputs; the values arose there."},
    {801, error, "the program raised an exception", "Read the exception text of the named ranks."},
    {802, error, "a rank died", "Read the named rank's last output; the signal says how it ended."},
    {803, error, "a rank passed a deadline",
     "Look at the named rank's last record; --timeout allows more time."},
    {804, error, "ranks disagree on their steps", "Make every rank run the same number of steps."},
    {805, error, "the program is not repeatable",
     "Fix the seeds and ask for deterministic kernels."},
};

constexpr CauseInfo kCauses[] = {
    {Cause::bypass, "bypass", "the loss was computed past the wrapper",
     "Call the wrapper, not its inner module, for the forward that makes the loss."},
    {Cause::stray_arm, "stray_arm", "a wrapper forward without a backward armed the reduction",
     "Run forwards whose output is dropped under no_grad."},
    {Cause::no_sync_window, "no_sync_window", "the last micro-step ran under no_sync",
     "Leave no_sync before the forward of the last micro-step."},
    {Cause::part_of_step, "part_of_step", "a part of the step ran outside the reduction",
     "Run one backward for each armed wrapper forward."},
    {Cause::unused_parameter, "unused_parameter", "a parameter took no part in the loss",
     "Use every parameter, freeze it, or set find_unused_parameters."},
    {Cause::stale_hook, "stale_hook", "a parameter was replaced, unfrozen or added after wrapping",
     "Wrap the model after its last change."},
    {Cause::ignored_parameter, "ignored_parameter", "the wrapper was told to ignore the parameter",
     "Take the name off the wrapper's ignore list."},
    {Cause::grad_api, "grad_api", "gradients were made by autograd.grad, which fires no hooks",
     "Use backward(), or reduce the gradients by hand."},
    {Cause::sum_not_mean, "sum_not_mean", "the gradients were summed and never divided",
     "Divide by the number of ranks."},
    {Cause::scaled, "scaled", "one factor stands between the gradient and its declared reduction",
     "Find the factor: loss scaling, accumulation, or a hook."},
    {Cause::double_division, "double_division", "the gradients were divided twice",
     "Divide by the number of ranks once."},
    {Cause::token_weighting, "token_weighting", "ranks are weighted by their share of the data",
     "Declare the weighting, or normalise the loss over all ranks."},
    {Cause::sub_group, "sub_group", "the reduction ran over a part of the ranks",
     "Give the wrapper the group of all data-parallel ranks."},
    {Cause::lost_rank, "lost_rank", "one rank's gradient is not in the reduced value",
     "Look at what that rank does in backward."},
    {Cause::rank_divergent_graph, "rank_divergent_graph", "ranks ran different graphs",
     "Make every rank use the same parameters in a step."},
    {Cause::shared_by_mistake, "shared_by_mistake", "a rank-local tensor was reduced",
     "Keep the tensor out of the wrapper."},
    {Cause::wire_dtype, "wire_dtype", "the gradients travelled in a coarser type",
     "Declare the wire type in the plan, or reduce in full precision."},
    {Cause::overflow_in_reduction, "overflow_in_reduction",
     "finite gradients overflowed in the sum",
     "Divide before the reduction, or reduce in a wider type."},
    {Cause::scaler_mismatch, "scaler_mismatch", "some ranks skipped the step, others did not",
     "Share the overflow flag of the gradient scaler between ranks."},
    {Cause::clip_before_reduce, "clip_before_reduce", "gradients were clipped before the reduction",
     "Clip after the reduction."},
    {Cause::start_mismatch, "start_mismatch", "ranks started from different parameters",
     "Broadcast the parameters before the first step."},
    {Cause::buffer_drift, "buffer_drift", "buffers differ between ranks",
     "Synchronise the buffers."},
    {Cause::not_stepped, "not_stepped", "the optimizer did not step the parameter",
     "Give the parameter to the optimizer."},
    {Cause::nondeterministic, "nondeterministic", "the same step gives other bits when repeated",
     "Ask for deterministic kernels, then compare again."},
    {Cause::corrupted_rank, "corrupted_rank", "one rank alone holds other bits",
     "Suspect that rank's memory or processor; repeat the run on another machine."},
    {Cause::duplicate_data, "duplicate_data", "ranks were given the same batches",
     "Give each rank its own part of the data."},
    {Cause::carried_over, "carried_over", "gradients of an earlier step were not cleared",
     "Clear the gradients after each optimizer step."},
    {Cause::bf16_log_softmax, "bf16_log_softmax",
     "log-probs were computed or stored in a low precision",
     "Cast the logits with float() before log_softmax and keep the result in float32."},
    {Cause::low_precision_logsumexp, "low_precision_logsumexp",
     "the logsumexp was computed or stored in a low precision",
     "Compute logit and logsumexp in float32, in one pass."},
    {Cause::low_precision_logits, "low_precision_logits",
     "the logits of one side were rounded to a low precision",
     "Compute the head in the same precision on both sides, best in float32."},
    {Cause::temperature, "temperature", "one side was computed at another temperature",
     "Divide the logits by the sampling temperature on both sides."},
    {Cause::dropout, "dropout", "dropout was active in a forward that made log-probs",
     "Switch the model to eval() for both forwards, then compare again."},
    {Cause::position_ids, "position_ids", "positions are not shifted past the padding",
     "Pass position_ids that start at the first real token of every row."},
    {Cause::padding, "padding", "padding tokens take part in attention",
     "Pass the attention mask, or score each row alone without padding."},
    {Cause::shift, "shift", "log-probs stand one or more tokens beside their own",
     "Shift the old log-probs by the named lag and compare again."},
    {Cause::row_order, "row_order", "rows stand in another order on the two sides",
     "Match rows by an id that travels with them, not by their place."},
    {Cause::missing_as_zero, "missing_as_zero", "log-probs that were never computed stand as 0.0",
     "Refuse rows whose log-probs are shorter than their tokens, or mask them out."},
    {Cause::renormalised_sampling, "renormalised_sampling",
     "one side is normalised over the kept tokens only",
     "Record log-probs before top-p, top-k and min-p, or renormalise both sides alike."},
    {Cause::packing, "packing", "packed sequences see each other",
     "Pass the boundaries of packed sequences to attention; score one sequence alone."},
    {Cause::stale_weights, "stale_weights", "one side was made with older weights",
     "Compare a checksum of the weights on every engine, or run with a learning rate of 0."},
    {Cause::after_an_update, "after_an_update", "the weights were updated between old and new",
     "Compare in the first epoch and minibatch, before the optimizer steps."},
    {Cause::vocabulary_padding, "vocabulary_padding",
     "rows that pad the vocabulary take part in the softmax",
     "Cut the logits to the real vocabulary before log_softmax."},
    {Cause::expert_routing, "expert_routing", "a few tokens took another path through the model",
     "Replay the expert routing of the rollout; then switch fused kernels off one by one."},
    {Cause::quantised_rollout, "quantised_rollout", "the rollout ran on quantised weights",
     "Run one rollout in bf16 and compare again."},
    {Cause::retokenised, "retokenised", "the text was tokenised again and gave other tokens",
     "Pass token ids from rollout to training, never text."},
    {Cause::wrong_token, "wrong_token", "log-probs belong to another token than the sampled one",
     "Pick the log-prob by the sampled token's id."},
    {Cause::nonfinite_logits, "nonfinite_logits", "logits or log-probs are not finite",
     "Stop the step and look at the logits of the named rows."},
    {Cause::unexplained, "unexplained", "no known cause fits the evidence",
     "Compare the worst tensor's elements on the named ranks."},
};

constexpr std::array<std::string_view, 3> kSeverities = {"note", "warning", "error"};
constexpr std::array<std::string_view, 3> kConfidences = {"possible", "likely", "certain"};

}  // namespace

std::span<const CodeInfo> all_codes() { return kCodes; }

const CodeInfo* find_code(int code) {
  const auto* found = std::find_if(std::begin(kCodes), std::end(kCodes),
                                   [code](const CodeInfo& info) { return info.code == code; });
  return found == std::end(kCodes) ? nullptr : found;
}

Finding finding_of(int code, std::string message) {
  const CodeInfo& info = *find_code(code);
  Finding finding;
  finding.code = code;
  finding.severity = info.severity;
  finding.message = std::move(message);
  finding.hint = info.hint;
  return finding;
}

std::string code_text(int code) { return "GC" + std::to_string(code); }

std::optional<int> code_from_text(std::string_view text) {
  if (!text.starts_with("GC")) return std::nullopt;
  int code = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), code);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && find_code(code) != nullptr ? std::optional(code) : std::nullopt;
}

std::span<const CauseInfo> all_causes() { return kCauses; }

const CauseInfo& info_of(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

std::string_view name_of(Cause cause) { return info_of(cause).name; }

std::optional<Cause> cause_from_name(std::string_view name) {
  for (const CauseInfo& info : kCauses) {
    if (info.name == name) return info.cause;
  }
  return std::nullopt;
}

std::string_view name_of(Severity severity) { return name_at(kSeverities, severity); }
std::string_view name_of(Confidence confidence) { return name_at(kConfidences, confidence); }

std::optional<Severity> severity_from_name(std::string_view name) {
  return find_name<Severity>(kSeverities, name);
}
std::optional<Confidence> confidence_from_name(std::string_view name) {
  return find_name<Confidence>(kConfidences, name);
}

}  // namespace gradcheck
