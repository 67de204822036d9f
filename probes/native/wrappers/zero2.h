// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "model/scenario.h"
#include "probes/native/fabric/fabric.h"
#include "probes/native/journal.h"
#include "probes/native/wrappers/gradient_shards.h"

namespace gradcheck::native {

// DeepSpeed's ZeRO stage 2, modelled. Kept: parameters are whole on every rank; hooks behind the
// accumulation fill buckets that are reduce-scattered (mean) as they fill, in the order in which
// gradients come, whether or not the engine's forward was entered, so that a loss past it is
// reduced all the same; afterwards `grad` is None and each rank has a slice of every bucket; the
// optimizer steps the slices, then all parameters are all-gathered. Left out: streams and overlap,
// fp32 master copies, the optimizer's own clipping and loss scale, ranks' broadcast at the start
// (models are equal by their seed).
class Zero2 {
 public:
  Zero2(std::string model, const ModelTensors& parameters, const Fabric& fabric,
        const WrapperOptions& options, Journal& journal);

  at::Tensor forward(const std::function<at::Tensor()>& body);
  bool inside_forward() const { return inside_; }
  bool armed() const { return true; }  // nothing has to arm it
  const std::vector<OwnedShard>& owned() const { return shards_.owned(); }
  void after_step();  // the other ranks' slices come in

 private:
  std::string model_;
  ModelTensors parameters_;
  Journal& journal_;
  GradientShards shards_;
  bool inside_ = false;
};

}  // namespace gradcheck::native
