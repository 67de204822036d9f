// SPDX-License-Identifier: Apache-2.0
#include "probes/native/fabric/counting_backend.h"

#include <utility>

#include "probes/native/snapshot/tensor_bytes.h"

namespace gradcheck::native {
namespace {

using WorkPtr = CountingBackend::WorkPtr;
using Tensors = CountingBackend::Tensors;
using TensorLists = CountingBackend::TensorLists;

// The work of a collective that was not carried out: complete at once, tensors as they were.
class DoneWork : public c10d::Work {
 public:
  explicit DoneWork(std::vector<at::Tensor> tensors)
      : Work(-1, c10d::OpType::ALLREDUCE),
        tensors_(std::move(tensors)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {
    future_->markCompleted(c10::IValue(tensors_));
  }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  std::vector<at::Tensor> result() override { return tensors_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  std::vector<at::Tensor> tensors_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

const char* name_of(const c10d::ReduceOp& op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return "sum";
    case c10d::ReduceOp::AVG:
      return "mean";
    case c10d::ReduceOp::MIN:
      return "min";
    case c10d::ReduceOp::MAX:
      return "max";
    default:
      return "other";
  }
}

Tensors joined(const TensorLists& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

CountingBackend::CountingBackend(c10::intrusive_ptr<c10d::Backend> inner, Journal& journal,
                                 const Faults& faults)
    : Backend(inner->getRank(), inner->getSize()),
      inner_(std::move(inner)),
      journal_(journal),
      faults_(faults) {}

void CountingBackend::count(const char* op, const Tensors& tensors, const char* reduce) {
  EventRecord record;
  record.type = EventType::collective;
  record.op = op;
  record.group = "world";
  record.reduce = reduce;
  record.bytes = bytes_in(tensors);
  if (!tensors.empty()) record.dtype = gradcheck::name_of(dtype_of(tensors[0]));
  journal_.event(std::move(record));
  journal_.flush();  // a rank that waits in it for ever has said so
}

const std::string CountingBackend::getBackendName() const { return inner_->getBackendName(); }

c10::intrusive_ptr<c10d::Backend::Options> CountingBackend::getBackendOptions() {
  return inner_->getBackendOptions();
}

WorkPtr CountingBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  count("broadcast", tensors);
  return inner_->broadcast(tensors, options);
}

WorkPtr CountingBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (faults_.skips_reduction(journal_.step())) return c10::make_intrusive<DoneWork>(tensors);
  count("all_reduce", tensors, name_of(options.reduceOp));
  if (faults_.corrupts_reduction(journal_.step())) {
    for (at::Tensor& tensor : tensors) tensor.zero_();
  }
  return inner_->allreduce(tensors, options);
}

WorkPtr CountingBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  count("all_reduce_sparse", tensors, name_of(options.reduceOp));
  return inner_->allreduce_sparse(tensors, options);
}

WorkPtr CountingBackend::allreduce_coalesced(Tensors& tensors,
                                             const c10d::AllreduceCoalescedOptions& options) {
  count("all_reduce_coalesced", tensors, name_of(options.reduceOp));
  return inner_->allreduce_coalesced(tensors, options);
}

WorkPtr CountingBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  count("reduce", tensors, name_of(options.reduceOp));
  return inner_->reduce(tensors, options);
}

WorkPtr CountingBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                   const c10d::AllgatherOptions& options) {
  count("all_gather", inputs);
  return inner_->allgather(outputs, inputs, options);
}

WorkPtr CountingBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                         const c10d::AllgatherOptions& options) {
  count("all_gather", {input});
  return inner_->_allgather_base(output, input, options);
}

WorkPtr CountingBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& options) {
  count("all_gather_coalesced", inputs);
  return inner_->allgather_coalesced(outputs, inputs, options);
}

WorkPtr CountingBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                         const c10d::AllgatherOptions& options) {
  count("all_gather_coalesced", inputs);
  return inner_->allgather_into_tensor_coalesced(outputs, inputs, options);
}

WorkPtr CountingBackend::gather(TensorLists& outputs, Tensors& inputs,
                                const c10d::GatherOptions& options) {
  count("gather", inputs);
  return inner_->gather(outputs, inputs, options);
}

WorkPtr CountingBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                 const c10d::ScatterOptions& options) {
  count("scatter", joined(inputs));  // empty but on the root
  return inner_->scatter(outputs, inputs, options);
}

WorkPtr CountingBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                        const c10d::ReduceScatterOptions& options) {
  count("reduce_scatter", joined(inputs), name_of(options.reduceOp));
  return inner_->reduce_scatter(outputs, inputs, options);
}

WorkPtr CountingBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                              const c10d::ReduceScatterOptions& options) {
  if (faults_.skips_reduction(journal_.step())) {
    output.copy_(input.narrow(0, getRank() * output.numel(), output.numel()));
    return c10::make_intrusive<DoneWork>(std::vector{output});
  }
  count("reduce_scatter", {input}, name_of(options.reduceOp));
  if (faults_.corrupts_reduction(journal_.step())) input.zero_();
  WorkPtr work = inner_->_reduce_scatter_base(output, input, options);
  if (!faults_.corrupts_shard(journal_.step())) return work;
  work->wait();  // Gloo copies its result again in every wait
  output.mul_(getSize());
  return c10::make_intrusive<DoneWork>(std::vector{output});
}

WorkPtr CountingBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  count("reduce_scatter_coalesced", inputs, name_of(options.reduceOp));
  return inner_->reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

WorkPtr CountingBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                       std::vector<std::int64_t>& output_sizes,
                                       std::vector<std::int64_t>& input_sizes,
                                       const c10d::AllToAllOptions& options) {
  count("all_to_all", {input});
  return inner_->alltoall_base(output, input, output_sizes, input_sizes, options);
}

WorkPtr CountingBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                  const c10d::AllToAllOptions& options) {
  count("all_to_all", inputs);
  return inner_->alltoall(outputs, inputs, options);
}

WorkPtr CountingBackend::send(Tensors& tensors, int destination, int tag) {
  count("send", tensors);
  return inner_->send(tensors, destination, tag);
}

WorkPtr CountingBackend::recv(Tensors& tensors, int source, int tag) {
  count("recv", tensors);
  return inner_->recv(tensors, source, tag);
}

WorkPtr CountingBackend::recvAnysource(Tensors& tensors, int tag) {
  count("recv", tensors);
  return inner_->recvAnysource(tensors, tag);
}

WorkPtr CountingBackend::barrier(const c10d::BarrierOptions& options) {
  count("barrier", {});
  return inner_->barrier(options);
}

void CountingBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  count("barrier", {});
  inner_->monitoredBarrier(options, wait_all_ranks);
}

void CountingBackend::setTimeout(std::chrono::milliseconds timeout) { inner_->setTimeout(timeout); }

void CountingBackend::setSequenceNumberForGroup() { inner_->setSequenceNumberForGroup(); }

std::uint64_t CountingBackend::getSequenceNumberForGroup() {
  return inner_->getSequenceNumberForGroup();
}

}  // namespace gradcheck::native
