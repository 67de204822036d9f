// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <vector>

namespace gradcheck {

// Orphans of this process's descendants become its children (prctl(2), PR_SET_CHILD_SUBREAPER):
// a launcher that dies does not hide its ranks.
void become_subreaper();

// Every process below this one, as /proc knows them, save those in `spared` and what is below them.
std::vector<pid_t> descendants(const std::vector<pid_t>& spared);

// SIGTERM to all descendants but the spared, SIGKILL after `grace_s` to whatever is left or was
// started meanwhile. Returns when none runs any more, or after two further seconds; who started
// them waits for them. Follows /proc and not process groups: torchrun's workers lead sessions.
// Requires: become_subreaper() before they were started.
void end_descendants(double grace_s, const std::vector<pid_t>& spared);

}  // namespace gradcheck
