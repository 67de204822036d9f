// SPDX-License-Identifier: Apache-2.0
#include "model/json/native_program.h"

#include <nlohmann/json.hpp>

#include "model/record.h"

namespace gradcheck {
namespace {

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
  const ObjectNode object(node, {"broadcast_buffers", "find_unused_parameters",
                                 "gradient_as_bucket_view", "static_graph", "no_sync", "hook"});
  WrapperOptions options;
  read_flag(object, "broadcast_buffers", options.broadcast_buffers);
  read_flag(object, "find_unused_parameters", options.find_unused_parameters);
  read_flag(object, "gradient_as_bucket_view", options.gradient_as_bucket_view);
  read_flag(object, "static_graph", options.static_graph);
  read_part(object, "no_sync", options.no_sync, native_no_sync());
  read_part(object, "hook", options.hook, native_hooks());
  return options;
}

WrapperSpec wrapper_from(const Node& node) {
  const ObjectNode object(node, {"kind", "options"});
  WrapperSpec wrapper;
  wrapper.kind = object.require("kind").one_of(native_wrappers());
  read(object, "options", wrapper.options, wrapper_options_from);
  return wrapper;
}

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

Json to_json(const WrapperSpec& wrapper) {
  const WrapperOptions& options = wrapper.options;
  return {{"kind", wrapper.kind},
          {"options",
           {{"broadcast_buffers", options.broadcast_buffers},
            {"find_unused_parameters", options.find_unused_parameters},
            {"gradient_as_bucket_view", options.gradient_as_bucket_view},
            {"static_graph", options.static_graph},
            {"no_sync", options.no_sync},
            {"hook", options.hook}}}};
}

}  // namespace

NativeProgram native_program_from(const Node& node) {
  const ObjectNode object(node, {"model", "trainer", "loss", "wrapper", "path", "backend", "dtype",
                                 "data", "loss_scale", "batch_size", "hidden_size",
                                 "desirable_weight", "undesirable_weight", "fault"});
  NativeProgram program;
  program.model = object.require("model").one_of(native_models());
  program.trainer = object.require("trainer").one_of(native_trainers());
  program.loss = object.require("loss").one_of(native_losses());
  read(object, "wrapper", program.wrapper, wrapper_from);
  program.path = default_path(program.wrapper.kind, program.loss);
  read_part(object, "path", program.path, native_paths());
  read_part(object, "backend", program.backend, native_backends());
  read_part(object, "dtype", program.dtype, native_dtypes());
  read_part(object, "data", program.data, native_data());
  read_number(object, "loss_scale", program.loss_scale);
  read_integer(object, "batch_size", program.batch_size, 2, 4096);
  read_integer(object, "hidden_size", program.hidden_size, 0, 65536);
  read_weight(object, "desirable_weight", program.desirable_weight);
  read_weight(object, "undesirable_weight", program.undesirable_weight);
  read(object, "fault", program.fault, fault_from);
  return program;
}

NativeProgram fitting_program_from(const Node& node) {
  NativeProgram program = native_program_from(node);
  const std::string problem = misfit_of_path(program.path, program.wrapper.kind, program.loss);
  if (!problem.empty()) node.fail(problem);
  return program;
}

Json to_json(const NativeProgram& program) {
  Json json = {{"model", program.model},
               {"trainer", program.trainer},
               {"loss", program.loss},
               {"wrapper", to_json(program.wrapper)},
               {"path", program.path},
               {"backend", program.backend},
               {"dtype", program.dtype},
               {"data", program.data},
               {"loss_scale", program.loss_scale},
               {"batch_size", program.batch_size},
               {"hidden_size", program.hidden_size},
               {"desirable_weight", program.desirable_weight},
               {"undesirable_weight", program.undesirable_weight}};
  if (program.fault) json["fault"] = to_json(*program.fault);
  return json;
}

}  // namespace gradcheck
