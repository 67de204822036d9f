// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/zero3.h"

#include <numeric>

namespace gradcheck::native {
namespace {

at::Tensor nothing(const OwnedShard& shard) { return at::empty({0}, shard.value.scalar_type()); }

}  // namespace

std::unique_ptr<ShardedModel> make_zero3(const std::string& model, const ModelTensors& parameters,
                                         const Fabric& fabric, const WrapperOptions& options,
                                         Journal& journal) {
  Units one(1, std::vector<std::size_t>(parameters.size()));
  std::iota(one.front().begin(), one.front().end(), std::size_t{0});
  return std::make_unique<ShardedModel>(
      ShardedModel::Kind{"zero3", "DeepSpeed's ZeRO-3", cut_each, nothing}, model, parameters, one,
      fabric, options, journal);
}

}  // namespace gradcheck::native
