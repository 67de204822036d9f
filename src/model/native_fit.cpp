// SPDX-License-Identifier: Apache-2.0
#include "model/native_fit.h"

#include "model/native_parts.h"

namespace gradcheck {
namespace {

std::string part(std::string_view key, std::string_view name) {
  return std::string(key) + " \"" + std::string(name) + "\"";
}

std::string misfit_of_path(const NativeProgram& program, const std::string& path) {
  const bool has_wrapper = program.wrapper.kind != "none";
  const std::string subject = part("path", path);
  if (has_wrapper == (path == "direct")) {
    return subject + (has_wrapper ? " means no wrapper" : " needs a wrapper");
  }
  const bool needs_logits = path == "wrapped" || path == "wrapped_twice";
  if (!needs_logits || program.loss == "dense") return "";
  return subject + " returns logits; " + part("loss", program.loss) +
         " needs hidden states: use \"redirected\" or \"unwrapped\"";
}

std::string misfit_of_paths(const NativeProgram& program) {
  if (!program.guard.empty()) {
    if (program.path.empty()) {
      const bool critic_has_path = program.critic && !program.critic->path.empty();
      return critic_has_path ? misfit_of_path(program, program.critic->path) : "";
    }
    return part("guard", program.guard) + " chooses the path itself, so " +
           part("path", program.path) + " does not go with it";
  }
  std::string problem = misfit_of_path(program, program.path);
  if (!problem.empty() || !program.critic) return problem;
  return misfit_of_path(program, program.critic->path);
}

std::string misfit_of_objective(const NativeProgram& program) {
  for (const Objective& objective : program.objectives) {
    const std::string_view owner = trainer_of(native_objectives(), objective.name);
    if (owner == trainer_of(native_trainers(), program.trainer)) continue;
    return part("objectives: name", objective.name) + " belongs to " + part("trainer", owner) +
           ", not to " + part("trainer", program.trainer);
  }
  return "";
}

// The KL term is added to each token of another objective.
std::string misfit_of_k3(const NativeProgram& program) {
  if (program.objectives.size() != 1 || program.objectives.front().name != "k3") return "";
  return "objectives: name \"k3\" needs another objective of " + part("trainer", program.trainer);
}

// Chunks of a fused loss know nothing of each other, and Liger's loses what it is not passed.
std::string misfit_of_fused(const NativeProgram& program) {
  if (program.loss != "fused") return "";
  if (program.logits != LogitOptions()) {
    return "loss \"fused\" does not know logits: temperature, softcap and scale are read by "
           "\"dense\" "
           "and \"chunked\"";
  }
  for (const Objective& objective : program.objectives) {
    if (objective.name == "sigmoid" || objective.name == "kto") continue;
    return "loss \"fused\" has no " + part("objectives: name", objective.name);
  }
  if (program.objectives.size() > 1) return "loss \"fused\" computes one of objectives only";
  if (program.reference == "equal")
    return "loss \"fused\" shows no log-probs to reference \"equal\"";
  if (program.label_smoothing != 0) return "loss \"fused\" loses label_smoothing";
  if (program.desirable_weight == program.undesirable_weight) return "";
  return "loss \"fused\" ignores desirable_weight and undesirable_weight";
}

std::string misfit_of_batch(const NativeProgram& program) {
  if (program.trainer != "dpo" || program.batch_size % 2 == 0) return "";
  return part("trainer", program.trainer) + " needs an even batch_size: chosen and rejected rows";
}

bool is_critic(std::string_view model) { return trainer_of(native_models(), model) == "critic"; }

std::string misfit_of_critic(const NativeProgram& program) {
  const std::string trainer = part("trainer", program.trainer);
  if ((program.trainer == "critic") != is_critic(program.model)) {
    return trainer + " does not go with " + part("model", program.model);
  }
  if ((program.trainer == "ppo") != program.critic.has_value()) {
    return trainer + (program.critic ? " has no critic" : " needs a critic");
  }
  if (!program.critic || is_critic(program.critic->model)) return "";
  return part("critic: model", program.critic->model) + " has no value head, which " + trainer +
         " needs";
}

constexpr std::int64_t kExpertsOfMixture = 4;  // minimind_moe's

std::string misfit_of_experts(const NativeProgram& program) {
  if (program.model == "minimind_moe") {
    if (program.idle_experts < kExpertsOfMixture) return "";
    return "idle_experts " + std::to_string(program.idle_experts) + " leaves none of the " +
           std::to_string(kExpertsOfMixture) + " experts that " + part("model", program.model) +
           " declares";
  }
  const std::string model = part("model", program.model) + " has no experts";
  if (program.idle_expert != "never") return model + ": idle_expert must be \"never\"";
  if (program.idle_experts != 1) return model + ", which idle_experts is about";
  if (!program.touch_idle_expert) return model + ": touch_idle_expert must be true";
  return program.balance_share == NativeProgram().balance_share
             ? ""
             : model + ", which balance_share is about";
}

// Options of DDP that the wrappers which shard do not have, and how the program sets one.
std::string option_of_ddp_in(const WrapperOptions& options) {
  const WrapperOptions defaults;
  if (options.broadcast_buffers != defaults.broadcast_buffers) return "broadcast_buffers";
  if (options.find_unused_parameters) return "find_unused_parameters";
  if (options.gradient_as_bucket_view) return "gradient_as_bucket_view";
  if (options.static_graph) return "static_graph";
  if (options.no_sync != defaults.no_sync) return part("no_sync", options.no_sync);
  if (options.hook != "none" && options.hook != "sum") return part("hook", options.hook);
  return options.ignored.empty() ? "" : "ignored";
}

// Rollouts and old values of these are computed on the model itself.
bool runs_past_the_wrapper(std::string_view trainer) {
  return trainer == "grpo" || trainer == "agent" || trainer == "ppo" || trainer == "critic";
}

std::string misfit_of_sharding(const NativeProgram& program) {
  const std::string wrapper = part("wrapper: kind", program.wrapper.kind);
  if (!is_sharding(program.wrapper.kind)) {
    const bool strikes_shards = program.fault && program.fault->kind == "corrupt_shard";
    return strikes_shards ? "fault \"corrupt_shard\" needs shards, and " + wrapper + " has none"
                          : "";
  }
  const std::string option = option_of_ddp_in(program.wrapper.options);
  if (!option.empty()) return wrapper + " has no option " + option;
  if (program.clip_norm != 0) return wrapper + " has no clip_norm in the lab";
  if (program.grad_scale != 0) return wrapper + " has no grad_scale in the lab";
  if (program.wrapper.kind == "zero2" || !runs_past_the_wrapper(program.trainer)) return "";
  return part("trainer", program.trainer) + " runs the model past its wrapper, where " + wrapper +
         " leaves parts of it";
}

// A key that only some trainers read, and whether the program sets it.
struct TrainerKey {
  std::string_view key;
  std::string_view trainers;  // separated by spaces
  bool (*is_set)(const NativeProgram&);
};

constexpr TrainerKey kTrainerKeys[] = {
    {"label_smoothing", "dpo", [](const NativeProgram& p) { return p.label_smoothing != 0; }},
    {"desirable_weight", "kto", [](const NativeProgram& p) { return p.desirable_weight != 1; }},
    {"undesirable_weight", "kto", [](const NativeProgram& p) { return p.undesirable_weight != 1; }},
    {"labels \"one_sided\"", "kto", [](const NativeProgram& p) { return p.labels == "one_sided"; }},
    {"labels \"all_masked\"", "sft agent",
     [](const NativeProgram& p) { return p.labels == "all_masked"; }},
    {"roll_out", "grpo agent ppo", [](const NativeProgram& p) { return p.roll_out.has_value(); }},
    {"reference", "kto dpo grpo agent ppo",
     [](const NativeProgram& p) { return p.reference != "noisy"; }},
    {"rewards", "grpo agent ppo", [](const NativeProgram& p) { return p.rewards != "distinct"; }},
    {"epochs", "grpo agent ppo", [](const NativeProgram& p) { return p.epochs != 1; }},
    {"kl_limit", "ppo", [](const NativeProgram& p) { return p.kl_limit != 0; }},
    {"count_items", "sft", [](const NativeProgram& p) { return p.count_items; }},
    {"logits", "kto dpo sft grpo agent ppo",
     [](const NativeProgram& p) { return p.logits != LogitOptions(); }},
    {"loss \"fused\"", "kto dpo", [](const NativeProgram& p) { return p.loss == "fused"; }},
};

std::string misfit_of_keys(const NativeProgram& program) {
  for (const TrainerKey& row : kTrainerKeys) {
    const std::string readers = " " + std::string(row.trainers) + " ";
    const bool read = readers.find(" " + program.trainer + " ") != std::string::npos;
    if (!row.is_set(program) || read) continue;
    return part("trainer", program.trainer) + " does not know " + std::string(row.key);
  }
  return "";
}

std::string misfit_of_mistake(const NativeProgram& program) {
  const RollOut& roll_out = *program.roll_out;
  const std::string subject = part("roll_out: mistake", roll_out.mistake);
  const std::string_view owner = trainer_of(native_mistakes(), roll_out.mistake);
  if (!owner.empty() && owner != program.trainer) {
    return subject + " belongs to " + part("trainer", owner) + ", not to " +
           part("trainer", program.trainer);
  }
  if (roll_out.mistake == "packing" && program.batch_size % 2 != 0) {
    return subject + " packs pairs: batch_size must be even";
  }
  const bool forgets = roll_out.mistake == "temperature";
  return forgets && roll_out.temperature == 1 ? subject + " needs another temperature than 1" : "";
}

std::string misfit_of_roll_out(const NativeProgram& program) {
  if (!program.roll_out) return "";
  if (program.loss != "dense") {
    return "roll_out needs whole logits, which " + part("loss", program.loss) + " does not make";
  }
  if (program.labels == "all_masked")
    return "roll_out needs completions on every rank, not labels "
           "\"all_masked\"";
  if (program.logits != LogitOptions()) {
    return "roll_out has a temperature of its own and does not know logits";
  }
  const bool outside = program.roll_out->log_softmax == "outside";
  if (outside && program.roll_out->autocast == "none") {
    return "roll_out: log_softmax \"outside\" needs an autocast other than \"none\"";
  }
  return misfit_of_mistake(program);
}

using Rule = std::string (*)(const NativeProgram&);
constexpr Rule kRules[] = {misfit_of_paths,   misfit_of_k3,    misfit_of_objective,
                           misfit_of_keys,    misfit_of_fused, misfit_of_critic,
                           misfit_of_experts, misfit_of_batch, misfit_of_roll_out,
                           misfit_of_sharding};

}  // namespace

std::string misfit_of(const NativeProgram& program) {
  for (const Rule rule : kRules) {
    std::string problem = rule(program);
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace gradcheck
