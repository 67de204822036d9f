// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/graph_splitter.h"

namespace gradcheck::native {

std::vector<std::size_t> split_points(const std::vector<std::uint64_t>& parameter_bytes) {
  std::vector<std::size_t> points;
  std::uint64_t bucket = 0;
  for (std::size_t node = parameter_bytes.size(); node-- > 0;) {
    if (bucket >= (points.empty() ? kFirstBucketCap : kBucketCap)) {
      points.insert(points.begin(), node + 1);
      bucket = 0;
    }
    bucket += parameter_bytes[node];
  }
  return points;
}

void split_graph(const std::vector<GraphNode>& nodes) {
  std::vector<std::uint64_t> bytes;
  for (const GraphNode& node : nodes) bytes.push_back(node.parameter_bytes);
  for (const std::size_t point : split_points(bytes)) {
    static_cast<void>(nodes[point - 1].output.storage());
  }
}

}  // namespace gradcheck::native
