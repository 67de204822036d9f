// SPDX-License-Identifier: Apache-2.0
#include "verdict/unsupported.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gradcheck {
namespace {

// The names that users know the wrappers by.
std::string_view wrapper_name(std::string_view kind) {
  if (kind == "fsdp") return "FullyShardedDataParallel";
  if (kind == "fsdp2") return "fully_shard";
  if (kind == "deepspeed") return "DeepSpeedEngine";
  if (kind == "dtensor") return "DTensor";
  return "a wrapper";
}

}  // namespace

void find_unsupported(const Context& context, FindingSet& findings) {
  for (const int rank : every_rank(context.table().world_size())) {
    for (const WrapperRecord& wrapper : context.table().rank(rank).wrappers) {
      if (is_judged(wrapper)) continue;
      findings.say(604,
                   fmt::format("{} is wrapped by {} ({}), which this version does not judge yet",
                               wrapper.model, wrapper_name(wrapper.kind), wrapper.kind),
                   {}, wrapper.model);
    }
  }
}

}  // namespace gradcheck
