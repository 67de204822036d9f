// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/wrapper.h"

#include <stdexcept>
#include <utility>

#include "probes/native/wrappers/fsdp1.h"
#include "probes/native/wrappers/fsdp2.h"
#include "probes/native/wrappers/zero3.h"

namespace gradcheck::native {
namespace {

template <class Wrapped>
const std::unique_ptr<Wrapped>* as(const auto& any) {
  return std::get_if<std::unique_ptr<Wrapped>>(&any);
}

}  // namespace

std::unique_ptr<Wrapper> Wrapper::make(const std::string& model, const ModelTensors& parameters,
                                       const ModelTensors& buffers, const Fabric* fabric,
                                       const WrapperSpec& spec, Journal& journal) {
  const WrapperOptions& options = spec.options;
  const auto made = [](Any any) { return std::unique_ptr<Wrapper>(new Wrapper(std::move(any))); };
  if (spec.kind == "none") return nullptr;
  if (spec.kind == "ddp") {
    return made(std::make_unique<Ddp>(model, parameters, buffers, *fabric, options, journal));
  }
  if (spec.kind == "zero2") {
    return made(std::make_unique<Zero2>(model, parameters, *fabric, options, journal));
  }
  if (spec.kind == "zero3") return made(make_zero3(model, parameters, *fabric, options, journal));
  if (spec.kind == "fsdp1") return made(make_fsdp1(model, parameters, *fabric, options, journal));
  if (spec.kind == "fsdp2") return made(make_fsdp2(model, parameters, *fabric, options, journal));
  throw std::invalid_argument("unknown wrapper " + spec.kind);
}

at::Tensor Wrapper::forward(const std::function<at::Tensor()>& body) {
  return std::visit([&](const auto& wrapper) { return wrapper->forward(body); }, wrapper_);
}

bool Wrapper::inside_forward() const {
  return std::visit([](const auto& wrapper) { return wrapper->inside_forward(); }, wrapper_);
}

bool Wrapper::armed() const {
  return std::visit([](const auto& wrapper) { return wrapper->armed(); }, wrapper_);
}

void Wrapper::set_no_sync(bool no_sync) {
  if (const auto* ddp = as<Ddp>(wrapper_)) (*ddp)->set_no_sync(no_sync);
}

bool Wrapper::no_sync() const {
  const auto* ddp = as<Ddp>(wrapper_);
  return ddp != nullptr && (*ddp)->no_sync();
}

void Wrapper::after_backward() {
  if (const auto* ddp = as<Ddp>(wrapper_)) (*ddp)->record_backward();
  if (const auto* sharded = as<ShardedModel>(wrapper_)) (*sharded)->after_backward();
}

void Wrapper::after_step() {
  if (const auto* zero2 = as<Zero2>(wrapper_)) (*zero2)->after_step();
}

const std::vector<OwnedShard>* Wrapper::owned() const {
  if (const auto* zero2 = as<Zero2>(wrapper_)) return &(*zero2)->owned();
  if (const auto* sharded = as<ShardedModel>(wrapper_)) return &(*sharded)->owned();
  return nullptr;
}

bool Wrapper::shards_parameters() const { return as<ShardedModel>(wrapper_) != nullptr; }

void Wrapper::with_whole_parameters(const std::function<void()>& body) {
  const auto* sharded = as<ShardedModel>(wrapper_);
  if (sharded != nullptr) (*sharded)->gather();
  body();
  if (sharded != nullptr) (*sharded)->release();
}

}  // namespace gradcheck::native
