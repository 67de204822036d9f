// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/payload_view.h"
#include "numeric/kernel.h"
#include "probes/native/faults.h"
#include "probes/native/journal.h"
#include "probes/native/models/model_tensor.h"
#include "probes/native/snapshot/clone_store.h"
#include "probes/native/snapshot/stopwatch.h"
#include "probes/native/wrappers/sharded_unit.h"

namespace gradcheck::native {

// Records one model's tensors at the stages of a step (evidence.md) at the journal's step and
// micro-step, and closes each stage with a mark. Its hooks sit on the parameters themselves, where
// a gradient passes before it is accumulated and before any reduction sees it. Keeps everything it
// records until forget(), as copies where the step still changes it: between record_after() and
// forget() nobody may write to parameters and buffers.
class Recorder {
 public:
  // What this rank has where a wrapper shards; it outlives the recorder.
  struct Sharding {
    const std::vector<OwnedShard>* owned = nullptr;  // by parameter; null: all of everything
    bool of_parameters = false;                      // not of their gradients alone
  };

  // `model`: the name under which it records.
  Recorder(std::string model, const ModelTensors& parameters, const ModelTensors& buffers,
           Sharding sharding, Journal& journal, const Faults& faults);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void record_start();         // parameters and buffers, before the step
  void record_next_forward();  // buffers that enter the step's first forward
  void record_local();         // what the backward that has just returned brought
  void record_reduced();       // gradients after that backward and its reduction
  void record_final();         // gradients that the optimizer takes
  void record_after();         // parameters and buffers, after the step

  const CloneStore& clones() const { return clones_; }
  void forget() { clones_.clear(); }
  double seconds() const { return watch_.seconds(); }  // spent in recording so far

 private:
  // Where records of a stage lie in time, and how many there were.
  struct Moment {
    Stage stage;
    std::int64_t micro;
    std::uint64_t tensors = 0;
  };

  struct Sample {
    at::Tensor copy;  // undefined: no gradient
    TensorStats stats;
    std::optional<ShardPlace> shard;
  };

  // A whole tensor, or the part of it that this rank owns.
  struct Held {
    at::Tensor tensor;
    std::optional<ShardPlace> shard;
  };

  void reserve();
  std::string key(const std::string& name) const { return model_ + "/" + name; }
  std::optional<ShardPlace> place_of(std::size_t parameter) const;
  Held parameter(std::size_t i) const;
  Held gradient(std::size_t i) const;
  at::Tensor keep(const Moment& moment, const std::string& name, const at::Tensor& tensor);
  void add_parameters(Moment& moment);
  void add_buffers(Moment& moment);
  Sample sample(std::int64_t micro, Stage stage, const std::string& name, const Held& gradient);
  void add_gradient(Moment& moment, const std::string& name, const Sample& sample);
  void add_final(Moment& moment, std::size_t parameter, const Digest& reduced);
  void send(Moment& moment, TensorKind kind, const std::string& name, TensorRecord record);
  void close(const Moment& moment);

  std::string model_;
  const ModelTensors& parameters_;
  const ModelTensors& buffers_;
  Sharding sharding_;
  Journal& journal_;
  const Faults& faults_;
  CloneStore clones_;
  Stopwatch watch_;
  std::vector<Sample> arrived_;  // by parameter: this backward's gradient
  std::vector<Digest> reduced_;  // by parameter: of the last reduction; meaningless where absent
  std::vector<std::optional<unsigned>> hooks_;  // by parameter: none where it is frozen
};

}  // namespace gradcheck::native
