// SPDX-License-Identifier: Apache-2.0
#include "model/json/native_program.h"

#include <nlohmann/json.hpp>

#include "model/native_fit.h"
#include "model/record.h"

namespace gradcheck {
namespace {

constexpr std::int64_t kMaxVocabulary = 1 << 20;
constexpr std::int64_t kMaxEpochs = 64;
constexpr std::int64_t kMaxExperts = 64;
constexpr std::int64_t kMaxRemainder = 1024;

void require_target(const ObjectNode& fault, FaultNeeds needs) {
  if (needs == FaultNeeds::phase) fault.require("phase");
  if (needs == FaultNeeds::tensor) fault.require("tensor");
  if (needs == FaultNeeds::stage) enum_up_to(fault.require("tensor"), Stage::next_forward);
}

Fault fault_from(const Node& node) {
  const ObjectNode object(node, {"kind", "rank", "phase", "step", "tensor"});
  Fault fault;
  fault.kind = object.require("kind").one_of(fault_kinds());
  read(object, "rank", fault.rank,
       [](const Node& rank) { return static_cast<int>(rank.integer(-1, kMaxRanks - 1)); });
  read_part(object, "phase", fault.phase, fault_phases());
  read_integer(object, "step", fault.step, 0);
  read_text(object, "tensor", fault.tensor);
  require_target(object, needs_of_fault(fault.kind));
  return fault;
}

WrapperOptions wrapper_options_from(const Node& node) {
  const ObjectNode object(node,
                          {"broadcast_buffers", "find_unused_parameters", "gradient_as_bucket_view",
                           "static_graph", "no_sync", "hook", "optimize_ddp", "ignored"});
  WrapperOptions options;
  read_flag(object, "broadcast_buffers", options.broadcast_buffers);
  read_flag(object, "find_unused_parameters", options.find_unused_parameters);
  read_flag(object, "gradient_as_bucket_view", options.gradient_as_bucket_view);
  read_flag(object, "static_graph", options.static_graph);
  read_part(object, "no_sync", options.no_sync, native_no_sync());
  read_part(object, "hook", options.hook, native_hooks());
  read_flag(object, "optimize_ddp", options.optimize_ddp);
  read(object, "ignored", options.ignored, [](const Node& names) { return names.texts(); });
  return options;
}

WrapperSpec wrapper_from(const Node& node) {
  const ObjectNode object(node, {"kind", "options"});
  WrapperSpec wrapper;
  wrapper.kind = object.require("kind").one_of(native_wrappers());
  read(object, "options", wrapper.options, wrapper_options_from);
  return wrapper;
}

Objective objective_from(const Node& node) {
  const ObjectNode object(node, {"name", "weight"});
  Objective objective;
  objective.name = object.require("name").one_of(native_objectives());
  read_number(object, "weight", objective.weight);
  return objective;
}

std::vector<Objective> objectives_from(const Node& node) {
  std::vector<Objective> objectives;
  for (const Node& item : node.items(1)) {
    Objective objective = objective_from(item);
    const auto same = std::ranges::find(objectives, objective.name, &Objective::name);
    if (same != objectives.end()) item.fail("there are two objectives " + in_quotes(same->name));
    objectives.push_back(std::move(objective));
  }
  return objectives;
}

// Its path is the policy's where it names none.
Critic critic_from(const Node& node, const std::string& policy_path) {
  const ObjectNode object(node, {"model", "path"});
  Critic critic{object.require("model").one_of(native_models()), policy_path};
  read_part(object, "path", critic.path, native_paths());
  return critic;
}

RollOut roll_out_from(const Node& node) {
  const ObjectNode object(node, {"autocast", "log_softmax", "eval", "dropout", "temperature",
                                 "mistake", "debug_log_ratio"});
  RollOut roll_out;
  read_part(object, "autocast", roll_out.autocast, native_autocast());
  read_part(object, "log_softmax", roll_out.log_softmax, native_log_softmax());
  read_flag(object, "eval", roll_out.eval);
  read_number(object, "dropout", roll_out.dropout);
  read_number(object, "temperature", roll_out.temperature);
  read_part(object, "mistake", roll_out.mistake, native_mistakes());
  read_flag(object, "debug_log_ratio", roll_out.debug_log_ratio);
  const bool is_share = roll_out.dropout >= 0 && roll_out.dropout < 1;
  if (!is_share) object.require("dropout").fail("must be at least 0 and below 1");
  if (!(roll_out.temperature > 0)) object.require("temperature").fail("must be above 0");
  return roll_out;
}

void read_smoothing(const ObjectNode& object, double& smoothing) {
  read_number(object, "label_smoothing", smoothing);
  if (smoothing >= 0 && smoothing < 0.5) return;
  object.require("label_smoothing").fail("must be at least 0 and below 0.5");
}

// Not negative.
void read_weight(const ObjectNode& object, std::string_view key, double& weight) {
  read_number(object, key, weight);
  if (weight < 0) object.require(key).fail("must not be negative");
}

Json to_json(const Fault& fault) {
  Json json = {{"kind", fault.kind}, {"rank", fault.rank}};
  if (!fault.phase.empty()) json["phase"] = fault.phase;
  json["step"] = fault.step;
  if (!fault.tensor.empty()) json["tensor"] = fault.tensor;
  return json;
}

Json to_json(const RollOut& roll_out) {
  return {{"autocast", roll_out.autocast},
          {"log_softmax", roll_out.log_softmax},
          {"eval", roll_out.eval},
          {"dropout", roll_out.dropout},
          {"temperature", roll_out.temperature},
          {"mistake", roll_out.mistake},
          {"debug_log_ratio", roll_out.debug_log_ratio}};
}

Json to_json(const WrapperSpec& wrapper) {
  const WrapperOptions& options = wrapper.options;
  return {{"kind", wrapper.kind},
          {"options",
           {{"broadcast_buffers", options.broadcast_buffers},
            {"find_unused_parameters", options.find_unused_parameters},
            {"gradient_as_bucket_view", options.gradient_as_bucket_view},
            {"static_graph", options.static_graph},
            {"no_sync", options.no_sync},
            {"hook", options.hook},
            {"optimize_ddp", options.optimize_ddp},
            {"ignored", options.ignored}}}};
}

Json to_json(const std::vector<Objective>& objectives) {
  Json json = Json::array();
  for (const Objective& objective : objectives) {
    json.push_back({{"name", objective.name}, {"weight", objective.weight}});
  }
  return json;
}

const std::initializer_list<std::string_view> kKeys = {"model",
                                                       "trainer",
                                                       "loss",
                                                       "objectives",
                                                       "wrapper",
                                                       "path",
                                                       "guard",
                                                       "backend",
                                                       "dtype",
                                                       "data",
                                                       "loss_scale",
                                                       "batch_size",
                                                       "hidden_size",
                                                       "vocab_size",
                                                       "labels",
                                                       "label_smoothing",
                                                       "desirable_weight",
                                                       "undesirable_weight",
                                                       "rewards",
                                                       "reference",
                                                       "roll_out",
                                                       "idle_expert",
                                                       "touch_idle_expert",
                                                       "balance_share",
                                                       "idle_experts",
                                                       "logits",
                                                       "remainder",
                                                       "critic",
                                                       "epochs",
                                                       "count_items",
                                                       "clip_norm",
                                                       "grad_scale",
                                                       "kl_limit",
                                                       "fault"};

LogitOptions logit_options_from(const Node& node) {
  const ObjectNode object(node, {"temperature", "softcap", "scale"});
  LogitOptions options;
  read_number(object, "temperature", options.temperature);
  if (!(options.temperature > 0)) object.require("temperature").fail("must be above 0");
  read_weight(object, "softcap", options.softcap);
  read_number(object, "scale", options.scale);
  return options;
}

Json to_json(const LogitOptions& options) {
  return {
      {"temperature", options.temperature}, {"softcap", options.softcap}, {"scale", options.scale}};
}

void read_run_keys(const ObjectNode& object, NativeProgram& program) {
  read_part(object, "backend", program.backend, native_backends());
  read_part(object, "dtype", program.dtype, native_dtypes());
  read_part(object, "data", program.data, native_data());
  read_number(object, "loss_scale", program.loss_scale);
  read_integer(object, "batch_size", program.batch_size, 2, 4096);
  read_integer(object, "hidden_size", program.hidden_size, 0, 65536);
  read_integer(object, "vocab_size", program.vocab_size, 0, kMaxVocabulary);
  read_integer(object, "epochs", program.epochs, 1, kMaxEpochs);
  read_weight(object, "clip_norm", program.clip_norm);
  read_weight(object, "grad_scale", program.grad_scale);
  read_integer(object, "remainder", program.remainder, 0, kMaxRemainder);
}

// What only some trainers or models read.
void read_trainer_keys(const ObjectNode& object, NativeProgram& program) {
  read_part(object, "labels", program.labels, native_labels());
  read_smoothing(object, program.label_smoothing);
  read_weight(object, "desirable_weight", program.desirable_weight);
  read_weight(object, "undesirable_weight", program.undesirable_weight);
  read_part(object, "rewards", program.rewards, native_rewards());
  read_part(object, "reference", program.reference, native_references());
  read(object, "roll_out", program.roll_out, roll_out_from);
  read_flag(object, "count_items", program.count_items);
  read_weight(object, "kl_limit", program.kl_limit);
  read_part(object, "idle_expert", program.idle_expert, native_idle_expert());
  read_flag(object, "touch_idle_expert", program.touch_idle_expert);
  read_weight(object, "balance_share", program.balance_share);
  read_integer(object, "idle_experts", program.idle_experts, 1, kMaxExperts);
  read(object, "logits", program.logits, logit_options_from);
}

}  // namespace

NativeProgram native_program_from(const Node& node) {
  const ObjectNode object(node, kKeys);
  NativeProgram program;
  program.model = object.require("model").one_of(native_models());
  program.trainer = object.require("trainer").one_of(native_trainers());
  program.loss = object.require("loss").one_of(native_losses());
  read(object, "objectives", program.objectives, objectives_from);
  read(object, "wrapper", program.wrapper, wrapper_from);
  read_part(object, "guard", program.guard, native_guards());
  program.path = program.guard.empty() ? default_path(program.wrapper.kind, program.loss) : "";
  read_part(object, "path", program.path, native_paths());
  read(object, "critic", program.critic,
       [&](const Node& critic) { return critic_from(critic, program.path); });
  read_run_keys(object, program);
  read_trainer_keys(object, program);
  read(object, "fault", program.fault, fault_from);
  return program;
}

NativeProgram fitting_program_from(const Node& node) {
  NativeProgram program = native_program_from(node);
  const std::string problem = misfit_of(program);
  if (!problem.empty()) node.fail(problem);
  return program;
}

Json to_json(const NativeProgram& program) {
  Json json = {{"model", program.model},
               {"trainer", program.trainer},
               {"loss", program.loss},
               {"wrapper", to_json(program.wrapper)},
               {"backend", program.backend},
               {"dtype", program.dtype},
               {"data", program.data},
               {"loss_scale", program.loss_scale},
               {"batch_size", program.batch_size},
               {"hidden_size", program.hidden_size},
               {"vocab_size", program.vocab_size},
               {"labels", program.labels},
               {"label_smoothing", program.label_smoothing},
               {"desirable_weight", program.desirable_weight},
               {"undesirable_weight", program.undesirable_weight},
               {"rewards", program.rewards},
               {"reference", program.reference},
               {"idle_expert", program.idle_expert},
               {"touch_idle_expert", program.touch_idle_expert},
               {"balance_share", program.balance_share},
               {"idle_experts", program.idle_experts},
               {"logits", to_json(program.logits)},
               {"remainder", program.remainder},
               {"epochs", program.epochs},
               {"count_items", program.count_items},
               {"clip_norm", program.clip_norm},
               {"grad_scale", program.grad_scale},
               {"kl_limit", program.kl_limit}};
  if (!program.path.empty()) json["path"] = program.path;
  if (!program.guard.empty()) json["guard"] = program.guard;
  if (program.critic) {
    json["critic"] = {{"model", program.critic->model}};
    if (!program.critic->path.empty()) json["critic"]["path"] = program.critic->path;
  }
  if (program.roll_out) json["roll_out"] = to_json(*program.roll_out);
  if (!program.objectives.empty()) json["objectives"] = to_json(program.objectives);
  if (program.fault) json["fault"] = to_json(*program.fault);
  return json;
}

}  // namespace gradcheck
