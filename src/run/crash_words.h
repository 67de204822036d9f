// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace gradcheck {

// Whether a launcher (torchrun, mp.spawn, DeepSpeed, mpirun) says in its last lines that a rank was
// killed by its own abort, and of no rank that it ended with a status of its own. A rank that the
// launcher itself terminated, because another had ended first, is neither.
bool names_a_crash(std::string_view errors);

}  // namespace gradcheck
