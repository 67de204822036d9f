// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/ddp.h"

#include <numeric>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>
#include <vector>

#include "probes/native/snapshot/tensor_bytes.h"
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

GroupRecord declare_group(const Group& group) {
  GroupRecord record;
  record.name = "world";
  record.ranks.resize(static_cast<std::size_t>(group.processes->getSize()));
  std::iota(record.ranks.begin(), record.ranks.end(), 0);
  return record;
}

WrapperRecord declare_wrapper(const WrapperOptions& options) {
  WrapperRecord record;
  record.model = kPolicy;
  record.kind = "ddp";
  record.group = "world";
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

Ddp::Ddp(const ModelTensors& parameters, const ModelTensors& buffers, const Fabric& fabric,
         const WrapperOptions& options, Journal& journal)
    : state_(new State{options, fabric.group(), journal, detached(buffers), {}}) {
  synchronise_from_rank_0(parameters, buffers, state_->group, options.broadcast_buffers);
  state_->pair = make_reducer(parameters, state_->group, options);
  journal.send(declare_group(state_->group));
  journal.send(declare_wrapper(options));
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
  event.model = kPolicy;
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
  event.model = kPolicy;
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

void Ddp::finish_backward(bool was_armed) {
  const auto& reducer = state_->pair.reducer;
  EventRecord event;
  event.type = EventType::reducer;
  event.model = kPolicy;
  event.armed = reducer->armed();
  event.needs_finalize = reducer->needs_finalize();
  state_->journal.event(std::move(event));
  if (was_armed) reducer->check_finalized();
}

}  // namespace gradcheck::native
