// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "probes/native/fabric/group.h"
#include "probes/native/wrappers/reducer.h"

namespace gradcheck::native {

// What a wrapper with a communication hook declares of its reduction (evidence.md, `wrapper`).
struct HookPromise {
  std::string_view wire_dtype;  // empty: the gradients' own
  std::string_view reduce = "mean";
};

// Errors of both: std::invalid_argument for a name that is no hook (model/native_parts.h).
HookPromise promise_of_hook(const std::string& hook);
void register_hook(PeekReducer& reducer, const Group& group, const std::string& hook);

}  // namespace gradcheck::native
