// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

namespace gradcheck::native {

// The first thing a forked rank does: dies with the zygote, keeps no descriptor but its channel and
// stderr (which is stdout too), forgets the zygote's signal mask, sets one thread before LibTorch's
// first operator, runs the rank and leaves without destructors. Exit status 70 and a line on stderr
// where the lab itself failed.
// Requires: descriptors 0–2 are open and `channel`, `error` are none of them.
[[noreturn]] void become_rank(int channel, int error, pid_t zygote);

}  // namespace gradcheck::native
