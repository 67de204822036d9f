// SPDX-License-Identifier: Apache-2.0
#include "probes/native/fabric/fabric.h"

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "probes/native/fabric/counting_backend.h"
#include "probes/native/fabric/group.h"

namespace gradcheck::native {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

StorePtr open_store(const RunRecord& run) {
  auto file = c10::make_intrusive<c10d::FileStore>(run.directory + "/store", run.world_size);
  file->setTimeout(milliseconds(run.rendezvous_timeout_s));
  return c10::make_intrusive<c10d::PrefixStore>("world", std::move(file));
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const RunRecord& run, const StorePtr& store) {
  auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(run.collective_timeout_s));
  options->threads = 1;
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", store), run.rank, run.world_size, options);
}

}  // namespace

Fabric::Fabric(const RunRecord& run, Journal& journal, const Faults& faults)
    : group_(std::make_unique<Group>()) {
  using Type = c10d::ProcessGroup::BackendType;
  const StorePtr store = open_store(run);
  auto counting = c10::make_intrusive<CountingBackend>(make_gloo(run, store), journal, faults);
  auto& processes = group_->processes;
  processes = c10::make_intrusive<c10d::ProcessGroup>(store, run.rank, run.world_size);
  processes->setBackend(at::kCPU, Type::CUSTOM, counting);
  processes->setDefaultBackend(Type::CUSTOM);
}

Fabric::~Fabric() = default;

at::Tensor Fabric::gather(const at::Tensor& value) const {
  const at::Tensor own = value.detach().reshape({1});
  std::vector<at::Tensor> inputs = {own};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < group_->processes->getSize(); ++rank) {
    outputs[0].push_back(at::empty_like(own));
  }
  group_->processes->allgather(outputs, inputs)->wait();
  return at::cat(outputs[0]);
}

}  // namespace gradcheck::native
