// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/fsdp2.h"

#include <functional>
#include <numeric>

#include "probes/native/wrappers/fsdp_units.h"

namespace gradcheck::native {
namespace {

at::Tensor rows_of(const OwnedShard& shard) {
  std::vector<std::int64_t> shape = shard.shape;
  const std::int64_t row =
      std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  shape.front() = row == 0 ? 0 : shard.value.numel() / row;
  return shard.value.detach().view(shape);
}

}  // namespace

std::unique_ptr<ShardedModel> make_fsdp2(const std::string& model, const ModelTensors& parameters,
                                         const Fabric& fabric, const WrapperOptions& options,
                                         Journal& journal) {
  return std::make_unique<ShardedModel>(
      ShardedModel::Kind{"fsdp2", "fully_shard", cut_rows, rows_of}, model, parameters,
      fsdp_units(parameters), fabric, options, journal);
}

}  // namespace gradcheck::native
