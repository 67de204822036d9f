// SPDX-License-Identifier: Apache-2.0
#include "probes/native/fabric/counting_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/native/front_end.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

using WorkPtr = CountingBackend::WorkPtr;
using Tensors = CountingBackend::Tensors;
using TensorLists = CountingBackend::TensorLists;
using testing::ElementsAre;

// Carries nothing out; remembers what it was asked for.
class Inner : public c10d::Backend {
 public:
  Inner() : Backend(0, 2) {}
  const std::string getBackendName() const override { return "inner"; }
  WorkPtr broadcast(Tensors&, const c10d::BroadcastOptions&) override { return saw("broadcast"); }
  WorkPtr allreduce(Tensors&, const c10d::AllreduceOptions&) override { return saw("allreduce"); }
  WorkPtr allreduce_sparse(Tensors&, const c10d::AllreduceOptions&) override {
    return saw("allreduce_sparse");
  }
  WorkPtr allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override {
    return saw("allreduce_coalesced");
  }
  WorkPtr reduce(Tensors&, const c10d::ReduceOptions&) override { return saw("reduce"); }
  WorkPtr allgather(TensorLists&, Tensors&, const c10d::AllgatherOptions&) override {
    return saw("allgather");
  }
  WorkPtr _allgather_base(at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override {
    return saw("_allgather_base");
  }
  WorkPtr allgather_coalesced(TensorLists&, Tensors&, const c10d::AllgatherOptions&) override {
    return saw("allgather_coalesced");
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors&, Tensors&,
                                          const c10d::AllgatherOptions&) override {
    return saw("allgather_into_tensor_coalesced");
  }
  WorkPtr gather(TensorLists&, Tensors&, const c10d::GatherOptions&) override {
    return saw("gather");
  }
  WorkPtr scatter(Tensors&, TensorLists&, const c10d::ScatterOptions&) override {
    return saw("scatter");
  }
  WorkPtr reduce_scatter(Tensors&, TensorLists&, const c10d::ReduceScatterOptions&) override {
    return saw("reduce_scatter");
  }
  WorkPtr _reduce_scatter_base(at::Tensor&, at::Tensor&,
                               const c10d::ReduceScatterOptions&) override {
    return saw("_reduce_scatter_base");
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors&, Tensors&,
                                          const c10d::ReduceScatterOptions&) override {
    return saw("reduce_scatter_tensor_coalesced");
  }
  WorkPtr alltoall_base(at::Tensor&, at::Tensor&, std::vector<std::int64_t>&,
                        std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    return saw("alltoall_base");
  }
  WorkPtr alltoall(Tensors&, Tensors&, const c10d::AllToAllOptions&) override {
    return saw("alltoall");
  }
  WorkPtr send(Tensors&, int destination, int tag) override {
    return saw("send " + std::to_string(destination) + " " + std::to_string(tag));
  }
  WorkPtr recv(Tensors&, int source, int tag) override {
    return saw("recv " + std::to_string(source) + " " + std::to_string(tag));
  }
  WorkPtr recvAnysource(Tensors&, int tag) override {
    return saw("recvAnysource " + std::to_string(tag));
  }
  WorkPtr barrier(const c10d::BarrierOptions&) override { return saw("barrier"); }
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override { saw("monitoredBarrier"); }
  std::uint64_t getSequenceNumberForGroup() override { return 42; }

  std::vector<std::string> asked;

 private:
  WorkPtr saw(const std::string& what) {
    asked.push_back(what);
    return nullptr;
  }
};

class Counting : public OneThread {
 protected:
  void use(std::optional<Fault> fault) {
    faults_.emplace(std::move(fault), 0);
    backend_ = c10::make_intrusive<CountingBackend>(inner, front_.journal(), *faults_);
  }
  c10d::Backend& backend() {
    if (!backend_) use(std::nullopt);
    return *backend_;
  }
  // "op bytes dtype reduce" of each event since the last call.
  std::vector<std::string> counted() {
    std::vector<std::string> events;
    for (const nlohmann::json& line : front_.lines()) {
      EXPECT_EQ(line["event"], "collective");
      std::string text = line["op"].get<std::string>();
      text += " " + std::to_string(line.value("bytes", 0)) + " " + line.value("dtype", "-");
      events.push_back(text + " " + line.value("reduce", "-"));
    }
    return events;
  }

  c10::intrusive_ptr<Inner> inner = c10::make_intrusive<Inner>();
  Tensors four = {at::zeros({4})};                 // 16 bytes
  Tensors two = {at::zeros({2}), at::zeros({2})};  // 16 bytes
  TensorLists lists = {two};
  std::vector<std::int64_t> sizes;

 private:
  FrontEnd front_;
  std::optional<Faults> faults_;
  c10::intrusive_ptr<CountingBackend> backend_;
};

TEST_F(Counting, ReductionsAreHandedOnAndNamed) {
  backend().allreduce(four);
  backend().allreduce_sparse(four);
  backend().allreduce_coalesced(two);
  backend().reduce(four);
  backend().reduce_scatter(four, lists);
  backend()._reduce_scatter_base(four[0], four[0]);
  backend().reduce_scatter_tensor_coalesced(two, two);
  EXPECT_THAT(inner->asked, ElementsAre("allreduce", "allreduce_sparse", "allreduce_coalesced",
                                        "reduce", "reduce_scatter", "_reduce_scatter_base",
                                        "reduce_scatter_tensor_coalesced"));
  EXPECT_THAT(counted(), ElementsAre("all_reduce 16 f32 sum", "all_reduce_sparse 16 f32 sum",
                                     "all_reduce_coalesced 16 f32 sum", "reduce 16 f32 sum",
                                     "reduce_scatter 16 f32 sum", "reduce_scatter 16 f32 sum",
                                     "reduce_scatter_coalesced 16 f32 sum"));
}

TEST_F(Counting, MovesAreHandedOnAndNamed) {
  backend().broadcast(four);
  backend().allgather(lists, four);
  backend()._allgather_base(four[0], four[0]);
  backend().allgather_coalesced(lists, two);
  backend().allgather_into_tensor_coalesced(two, two);
  backend().gather(lists, four);
  backend().scatter(four, lists);
  backend().alltoall_base(four[0], four[0], sizes, sizes);
  backend().alltoall(two, two);
  EXPECT_THAT(inner->asked, ElementsAre("broadcast", "allgather", "_allgather_base",
                                        "allgather_coalesced", "allgather_into_tensor_coalesced",
                                        "gather", "scatter", "alltoall_base", "alltoall"));
  EXPECT_THAT(counted(),
              ElementsAre("broadcast 16 f32 -", "all_gather 16 f32 -", "all_gather 16 f32 -",
                          "all_gather_coalesced 16 f32 -", "all_gather_coalesced 16 f32 -",
                          "gather 16 f32 -", "scatter 16 f32 -", "all_to_all 16 f32 -",
                          "all_to_all 16 f32 -"));
}

TEST_F(Counting, PointToPointAndBarriersAreHandedOnAndNamed) {
  backend().send(four, 1, 7);
  backend().recv(four, 1, 8);
  backend().recvAnysource(four, 9);
  backend().barrier();
  backend().monitoredBarrier({});
  EXPECT_THAT(inner->asked, ElementsAre("send 1 7", "recv 1 8", "recvAnysource 9", "barrier",
                                        "monitoredBarrier"));
  EXPECT_THAT(counted(), ElementsAre("send 16 f32 -", "recv 16 f32 -", "recv 16 f32 -",
                                     "barrier 0 - -", "barrier 0 - -"));
  EXPECT_EQ(backend().getSequenceNumberForGroup(), 42u);
}

TEST_F(Counting, ASkippedReductionReachesNobody) {
  Fault fault;
  fault.kind = "skip_reduction";
  use(fault);
  EXPECT_TRUE(backend().allreduce(four)->isCompleted());
  EXPECT_THAT(inner->asked, testing::IsEmpty());
  EXPECT_THAT(counted(), testing::IsEmpty());
}

}  // namespace
}  // namespace gradcheck::native
