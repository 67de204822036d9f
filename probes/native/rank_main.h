// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradcheck::native {

// The life of a rank after the fork: reads `run` from the channel, says hello, trains, says
// goodbye. Owns the descriptor. What the program throws becomes an `exception` event. Returns the
// exit status, to be passed to _exit: destructors of LibTorch and Gloo are not to run.
// Errors: InfrastructureError for what is no fault of the program, such as a front that has gone.
int rank_main(int channel_descriptor);

}  // namespace gradcheck::native
