// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/fsdp1.h"

#include "probes/native/wrappers/fsdp_units.h"

namespace gradcheck::native {
namespace {

at::Tensor flat_stretch(const OwnedShard& shard) { return shard.value; }

}  // namespace

std::unique_ptr<ShardedModel> make_fsdp1(const std::string& model, const ModelTensors& parameters,
                                         const Fabric& fabric, const WrapperOptions& options,
                                         Journal& journal) {
  return std::make_unique<ShardedModel>(
      ShardedModel::Kind{"fsdp1", "FullyShardedDataParallel", cut_flat, flat_stretch}, model,
      parameters, fsdp_units(parameters), fabric, options, journal);
}

}  // namespace gradcheck::native
