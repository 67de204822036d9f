// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "verdict/gradient.h"

namespace gradcheck {

// Names what is wrong with the parts of a sharded gradient where elements tell which ranks' parts
// are: they hold their own gradients (201), one factor times the declared value (204), or something
// else while other ranks are right (209). Leaves the diagnosis open where all owners are wrong in
// some other way: then the whole has one explanation, or none.
void diagnose_shards(const Context& context, GradientResult& result);

}  // namespace gradcheck
