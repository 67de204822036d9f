// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/comm_hooks.h"

#include <memory>
#include <stdexcept>

#include "probes/native/wrappers/low_rank_hook.h"

namespace gradcheck::native {
namespace {

// Sums over the ranks and forgets to divide.
class SumHook : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> tensors = {bucket.getBufferRef()};
    return state_->allreduce(tensors)->getFuture();
  }
};

template <c10d::BuiltinCommHookType type>
void add_builtin(PeekReducer& reducer, const Group&) {
  reducer.register_builtin_comm_hook(type);
}

void add_sum(PeekReducer& reducer, const Group& group) {
  reducer.register_comm_hook(std::make_unique<SumHook>(group.processes));
}

template <bool reduced>
void add_low_rank(PeekReducer& reducer, const Group& group) {
  reducer.register_comm_hook(make_low_rank_hook(group, reduced));
}

struct HookRow {
  std::string_view name;
  HookPromise promise;
  void (*add)(PeekReducer& reducer, const Group& group);
};

constexpr HookRow kHooks[] = {
    {"none", {}, [](PeekReducer&, const Group&) {}},
    {"allreduce", {}, add_builtin<c10d::BuiltinCommHookType::ALLREDUCE>},
    {"fp16_compress", {"f16"}, add_builtin<c10d::BuiltinCommHookType::FP16_COMPRESS>},
    {"sum", {}, add_sum},
    {"power_sgd", {"", "lossy"}, add_low_rank<true>},
    {"power_sgd_unreduced", {"", "lossy"}, add_low_rank<false>},
};

const HookRow& find_hook(const std::string& name) {
  for (const HookRow& row : kHooks) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("unknown hook " + name);
}

}  // namespace

HookPromise promise_of_hook(const std::string& hook) { return find_hook(hook).promise; }

void register_hook(PeekReducer& reducer, const Group& group, const std::string& hook) {
  find_hook(hook).add(reducer, group);
}

}  // namespace gradcheck::native
