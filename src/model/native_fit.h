// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/scenario.h"

namespace gradcheck {

// Why the parts of a program do not go together, naming both keys; empty where they do. The
// scenario decoder refuses such a program, and so does gradcheck-rank.
std::string misfit_of(const NativeProgram& program);

}  // namespace gradcheck
