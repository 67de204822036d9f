// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "probes/native/fabric/group.h"
#include "probes/native/ops.h"

namespace gradcheck::native {

// Communicates each gradient matrix M as P Qᵀ of rank 2, as powerSGD_hook of
// torch.distributed.algorithms.ddp_comm_hooks does: Q from a seed that all ranks share, P = M Q
// reduced to its mean and orthogonalised, Q = Mᵀ P reduced to its mean. Kept: one step of the power
// iteration, vectors reduced as they are, two rounds of collectives. Left out: error feedback, the
// warm start from the last Q, the first iterations without compression. LibTorch has no such hook
// in C++.
//
// The result is the same on every rank and is not the mean: a lossy reduction. With `reduced` false
// the factors stay each rank's own, and only vectors agree.
std::unique_ptr<c10d::CommHookInterface> make_low_rank_hook(const Group& group, bool reduced);

// The columns of `matrix` [n, k] made orthonormal one after the other; a column that depends on
// those before it becomes zero.
at::Tensor orthonormal_columns(const at::Tensor& matrix);

}  // namespace gradcheck::native
