// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "probes/native/ops.h"

namespace gradcheck::native {

// torch._dynamo's DDPOptimizer, re-created as far as a loss can notice it: a graph that is compiled
// inside a wrapper's forward is cut where its parameters, counted from the end, pass the bucket
// caps, and what crosses a cut is asked for its storage. Kept of the original
// (torch/_dynamo/backends/distributed.py): the caps, the walk from the end, the place of the cut,
// the question; the answer is LibTorch's. Left out: tracing, compilation, module parameters.
inline constexpr std::uint64_t kFirstBucketCap = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kBucketCap = std::uint64_t{25} << 20;

// Indices of the first node of every part but the first. `parameter_bytes` of each node, in order
// of execution.
std::vector<std::size_t> split_points(const std::vector<std::uint64_t>& parameter_bytes);

struct GraphNode {
  at::Tensor output;
  std::uint64_t parameter_bytes = 0;
};

// Errors: c10::NotImplementedError where a functorch-level tensor crosses a cut.
void split_graph(const std::vector<GraphNode>& nodes);

}  // namespace gradcheck::native
