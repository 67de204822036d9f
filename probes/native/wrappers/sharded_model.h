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

// What ZeRO-3 and FSDP have in common: parameters are parts between uses. The wrapper's forward
// all-gathers them, unit by unit, and gives them back; the backward of its output does so again.
// A parameter stays the leaf that it is, only its data are exchanged, so that graphs made inside
// end in it and code that meets it outside finds a part, or nothing. Gradients are reduce-scattered
// as they come; `grad` of a parameter is None.
// Left out, of all three: gathering each unit just before its own use, prefetching, streams, mixed
// precision.
class ShardedModel {
 public:
  // How one of them differs from the others.
  struct Kind {
    std::string name;
    std::string modelled;  // what reports say
    Cut cut;
    // What is left of a parameter on this rank outside of the forward.
    at::Tensor (*rest)(const OwnedShard& shard);
  };

  ShardedModel(Kind kind, std::string model, const ModelTensors& parameters, const Units& units,
               const Fabric& fabric, const WrapperOptions& options, Journal& journal);

  at::Tensor forward(const std::function<at::Tensor()>& body);
  bool inside_forward() const { return inside_; }
  bool armed() const { return armed_; }  // a forward with gradients came since the last backward
  void after_backward() { armed_ = false; }
  const std::vector<OwnedShard>& owned() const { return shards_.owned(); }

  void gather();   // parameters are whole from here …
  void release();  // … to here

 private:
  void begin_backward();

  Kind kind_;
  std::string model_;
  ModelTensors parameters_;
  Journal& journal_;
  GradientShards shards_;
  bool whole_ = true;
  bool inside_ = false;
  bool armed_ = false;
};

}  // namespace gradcheck::native
