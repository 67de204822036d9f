// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/zero2.h"

#include <utility>

#include "probes/native/wrappers/announcements.h"

namespace gradcheck::native {
namespace {

// Small enough that the lab's models fill several; DeepSpeed's default is 5e8 elements.
constexpr std::int64_t kBucketElements = 1 << 14;

// From the last parameter to the first, as gradients come.
Units buckets_of(const ModelTensors& parameters) {
  Units buckets(1);
  std::int64_t filled = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const std::int64_t size = parameters[i].value.numel();
    if (filled > 0 && filled + size > kBucketElements) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled += size;
  }
  return buckets;
}

}  // namespace

Zero2::Zero2(std::string model, const ModelTensors& parameters, const Fabric& fabric,
             const WrapperOptions& options, Journal& journal)
    : model_(std::move(model)),
      parameters_(parameters),
      journal_(journal),
      shards_(parameters, buckets_of(parameters), cut_flat, fabric.group(), options.hook != "sum") {
  announce_sharding(model_, "zero2", options.hook, fabric.group(), journal);
  say_modelled("DeepSpeed's ZeRO-2", journal);
}

at::Tensor Zero2::forward(const std::function<at::Tensor()>& body) {
  return announced_forward(model_, at::GradMode::is_enabled(), inside_, journal_, body);
}

void Zero2::after_step() {
  const at::NoGradGuard no_grad;
  const auto whole = shards_.gather();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].value.detach().copy_(whole[i]);
  }
}

}  // namespace gradcheck::native
