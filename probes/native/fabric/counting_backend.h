// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "probes/native/faults.h"
#include "probes/native/journal.h"

namespace gradcheck::native {

// A process-group backend that hands every collective to another one and records it: operation,
// bytes, dtype, reduction. Also where reductions are dropped or corrupted on purpose. Register it
// as BackendType::CUSTOM: c10d's Logger takes any group called "gloo" for a ProcessGroupGloo.
class CountingBackend : public c10d::Backend {
 public:
  CountingBackend(c10::intrusive_ptr<c10d::Backend> inner, Journal& journal, const Faults& faults);

  const std::string getBackendName() const override;
  c10::intrusive_ptr<Options> getBackendOptions() override;

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(
      std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;

 private:
  void count(const char* op, const std::vector<at::Tensor>& tensors, const char* reduce = "");

  c10::intrusive_ptr<c10d::Backend> inner_;
  Journal& journal_;
  const Faults& faults_;
};

}  // namespace gradcheck::native
