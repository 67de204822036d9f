// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "probes/native/fabric/group.h"
#include "probes/native/journal.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// What the wrappers that shard write down about themselves.

// The group, and that the wrapper's ranks own parts of the gradients. `hook` "sum" changes what is
// done, not what is declared.
void announce_sharding(const std::string& model, const std::string& kind, const std::string& hook,
                       const Group& group, Journal& journal);

// "modelled: …", which reports carry.
void say_modelled(const std::string& what, Journal& journal);

// A forward of the wrapper; `inside` is true while the body runs, also when it throws.
at::Tensor announced_forward(const std::string& model, bool armed, bool& inside, Journal& journal,
                             const std::function<at::Tensor()>& body);

}  // namespace gradcheck::native
