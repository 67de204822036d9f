// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/ddp.h"

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>
#include <vector>

#include "probes/native/snapshot/tensor_bytes.h"
#include "probes/native/wrappers/comm_hooks.h"
#include "probes/native/wrappers/reducer.h"

namespace gradcheck::native {
namespace {

constexpr std::size_t kBroadcastBytes = std::size_t{250} << 20;

std::vector<at::Tensor> detached(const ModelTensors& tensors) {
  std::vector<at::Tensor> values;
  for (const ModelTensor& tensor : tensors) values.push_back(tensor.value.detach());
  return values;
}

void synchronise_from_rank_0(const ModelTensors& parameters, const ModelTensors& buffers,
                             const Group& group, bool with_buffers) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> states = detached(parameters);
  c10d::verify_params_across_processes(group.processes, states, std::nullopt);
  if (with_buffers) {
    for (const at::Tensor& buffer : detached(buffers)) states.push_back(buffer);
  }
  c10d::broadcast_coalesced(group.processes, states, kBroadcastBytes, 0);
}

ModelTensors trainable(const ModelTensors& parameters) {
  ModelTensors found;
  for (const ModelTensor& parameter : parameters) {
    if (parameter.value.requires_grad()) found.push_back(parameter);
  }
  return found;
}

// As _ddp_params_and_buffers_to_ignore: full names only.
ModelTensors without(const ModelTensors& tensors, const std::vector<std::string>& ignored) {
  ModelTensors kept;
  for (const ModelTensor& tensor : tensors) {
    if (std::ranges::find(ignored, tensor.name) == ignored.end()) kept.push_back(tensor);
  }
  return kept;
}

GroupRecord declare_group(const Group& group) {
  GroupRecord record;
  record.name = "world";
  record.ranks.resize(static_cast<std::size_t>(group.processes->getSize()));
  std::iota(record.ranks.begin(), record.ranks.end(), 0);
  return record;
}

WrapperRecord declare_wrapper(const std::string& model, const WrapperOptions& options) {
  WrapperRecord record;
  record.model = model;
  record.kind = "ddp";
  record.group = "world";
  record.ignored = options.ignored;
  const HookPromise promise = promise_of_hook(options.hook);
  record.wire_dtype = promise.wire_dtype;
  record.reduce = promise.reduce;
  record.hook = options.hook == "none" ? "" : options.hook;
  record.buffers = options.broadcast_buffers ? "broadcast_before_forward" : "undeclared";
  record.find_unused = options.find_unused_parameters;
  record.static_graph = options.static_graph;
  record.bucket_view = options.gradient_as_bucket_view;
  return record;
}

// Marks that a body runs inside the wrapper's forward, also when it throws.
class InsideForward {
 public:
  explicit InsideForward(bool& inside) : inside_(inside) { inside_ = true; }
  ~InsideForward() { inside_ = false; }
  InsideForward(const InsideForward&) = delete;
  InsideForward& operator=(const InsideForward&) = delete;

 private:
  bool& inside_;
};

}  // namespace

struct Ddp::State {
  std::string model;
  WrapperOptions options;
  const Group& group;
  Journal& journal;
  std::vector<at::Tensor> buffers;
  ReducerPair pair;
  bool inside_forward = false;
  bool require_backward_grad_sync = true;
  bool require_forward_param_sync = true;
  std::shared_ptr<bool> delayed = std::make_shared<bool>(false);  // static graph's first backward
};

Ddp::Ddp(std::string model, const ModelTensors& parameters, const ModelTensors& buffers,
         const Fabric& fabric, const WrapperOptions& options, Journal& journal)
    : state_(new State{std::move(model), options, fabric.group(), journal, {}, {}}) {
  const ModelTensors own_buffers = without(buffers, options.ignored);
  const ModelTensors own_parameters = without(parameters, options.ignored);
  state_->buffers = detached(own_buffers);
  synchronise_from_rank_0(own_parameters, own_buffers, state_->group, options.broadcast_buffers);
  state_->pair = make_reducer(trainable(own_parameters), state_->group, options);
  journal.send(declare_group(state_->group));
  journal.send(declare_wrapper(state_->model, options));
}

Ddp::~Ddp() = default;

void Ddp::set_no_sync(bool no_sync) { state_->require_backward_grad_sync = !no_sync; }
bool Ddp::no_sync() const { return !state_->require_backward_grad_sync; }
bool Ddp::inside_forward() const { return state_->inside_forward; }
bool Ddp::armed() const { return state_->pair.reducer->armed(); }

at::Tensor Ddp::forward(const std::function<at::Tensor()>& body) {
  before_forward();
  at::Tensor output;
  {
    const InsideForward inside(state_->inside_forward);
    output = body();
  }
  return after_forward(output);
}

void Ddp::before_forward() {
  auto& [reducer, logger] = state_->pair;
  const bool grad = at::GradMode::is_enabled();
  EventRecord event;
  event.type = EventType::wrapper_forward;
  event.model = state_->model;
  event.armed = grad && state_->require_backward_grad_sync;
  event.grad_mode = grad;
  event.no_sync = no_sync();
  state_->journal.event(std::move(event));
  if (grad && state_->require_backward_grad_sync) {
    logger->set_runtime_stats_and_log();
    reducer->prepare_for_forward();
  }
  if (grad) reducer->rebuild_buckets();  // also what raises after an unfinished backward
  broadcast_buffers();
}

// The flag is cleared by forwards without gradients or under no_sync, so that the forward after
// one of these does not broadcast.
void Ddp::broadcast_buffers() {
  if (!state_->require_forward_param_sync || !state_->options.broadcast_buffers) return;
  if (state_->buffers.empty()) return;
  const at::NoGradGuard no_grad;
  c10d::broadcast_coalesced(state_->group.processes, state_->buffers, kBroadcastBytes, 0);
  EventRecord event;
  event.type = EventType::buffers_broadcast;
  event.model = state_->model;
  event.bytes = bytes_in(state_->buffers);
  state_->journal.event(std::move(event));
}

at::Tensor Ddp::after_forward(const at::Tensor& output) {
  const WrapperOptions& options = state_->options;
  const auto& reducer = state_->pair.reducer;
  const bool look_for_unused = options.find_unused_parameters && !options.static_graph;
  const bool arms = at::GradMode::is_enabled() && state_->require_backward_grad_sync;
  state_->require_forward_param_sync = arms;
  if (arms) {
    reducer->prepare_for_backward(look_for_unused ? std::vector{output}
                                                  : std::vector<at::Tensor>{});
  }
  const bool sinks = look_for_unused || (options.static_graph && !*state_->delayed);
  if (!sinks || !output.grad_fn()) return output;
  return sink(output, reducer, options.static_graph, state_->delayed);
}

void Ddp::record_backward() {
  const auto& reducer = state_->pair.reducer;
  EventRecord event;
  event.type = EventType::reducer;
  event.model = state_->model;
  event.armed = reducer->armed();
  event.needs_finalize = reducer->needs_finalize();
  state_->journal.event(std::move(event));
}

}  // namespace gradcheck::native
