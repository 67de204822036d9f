// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>

namespace gradcheck {

// Phrases that findings and reports share, so that one thing is called alike everywhere.

std::string ranks_text(std::span<const int> ranks);  // "rank 1", "ranks 0, 1"; empty: ""
std::string signal_text(int signal);                 // "SIGKILL"; "signal 999" where it has no name

}  // namespace gradcheck
