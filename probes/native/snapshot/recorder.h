// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/payload_view.h"
#include "numeric/kernel.h"
#include "probes/native/faults.h"
#include "probes/native/journal.h"
#include "probes/native/models/model_tensor.h"
#include "probes/native/snapshot/clone_store.h"
#include "probes/native/snapshot/stopwatch.h"

namespace gradcheck::native {

// Records the policy's tensors at the stages of a step (evidence.md) at the journal's step and
// micro-step, and closes each stage with a mark. Its hooks sit on the parameters themselves, where
// a gradient passes before it is accumulated and before any reduction sees it. Keeps copies of
// everything it records until forget().
class Recorder {
 public:
  Recorder(const ModelTensors& parameters, const ModelTensors& buffers, Journal& journal,
           const Faults& faults);
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
  void add(Moment& moment, TensorKind kind, const std::string& name, const at::Tensor& tensor,
           KernelMode mode);
  void add_all(Moment& moment, TensorKind kind, const ModelTensors& tensors);
  void add_final(Moment& moment, const std::string& name, const at::Tensor& gradient);
  void close(const Moment& moment);
  void send_record(Moment& moment, TensorKind kind, const std::string& name,
                   const at::Tensor& tensor, const TensorStats& stats);

  const ModelTensors& parameters_;
  const ModelTensors& buffers_;
  Journal& journal_;
  const Faults& faults_;
  CloneStore clones_;
  Stopwatch watch_;
  std::vector<at::Tensor> arrived_;  // by parameter: this backward's gradient, undefined if none
  std::vector<unsigned> hooks_;
};

}  // namespace gradcheck::native
