// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/reducer.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "probes/native/wrappers/comm_hooks.h"

namespace gradcheck::native {
namespace {

constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20;
constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

// One bucket to begin with, because the true order of gradients is not known yet; only with unused
// parameters, where buckets are never rebuilt, the usual limits.
std::vector<std::size_t> bucket_limits(const WrapperOptions& options) {
  if (options.static_graph || !options.find_unused_parameters) {
    return {static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())};
  }
  return {kFirstBucketBytes, kBucketBytes};
}

std::vector<at::Tensor> values_of(const ModelTensors& tensors) {
  std::vector<at::Tensor> values;
  for (const ModelTensor& tensor : tensors) values.push_back(tensor.value);
  return values;
}

std::unordered_map<std::size_t, std::string> names_of(const ModelTensors& tensors) {
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) names.emplace(i, tensors[i].name);
  return names;
}

std::shared_ptr<PeekReducer> construct(const ModelTensors& parameters, const Group& group,
                                       const WrapperOptions& options) {
  const auto values = values_of(parameters);
  const std::vector<bool> sparse(values.size(), false);
  auto buckets =
      std::get<0>(c10d::compute_bucket_assignment_by_size(values, bucket_limits(options), sparse));
  return std::make_shared<PeekReducer>(
      values, std::vector(buckets.rbegin(), buckets.rend()), group.processes, sparse,
      static_cast<std::int64_t>(kBucketBytes), options.find_unused_parameters,
      options.gradient_as_bucket_view, names_of(parameters),
      static_cast<std::int64_t>(kFirstBucketBytes), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<std::int64_t>{});
}

struct Callback : torch::CustomClassHolder {
  explicit Callback(std::function<void()> function) : run(std::move(function)) {}
  std::function<void()> run;
};

struct Sink : torch::autograd::Function<Sink> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& output,
                            const c10::intrusive_ptr<Callback>& on_backward) {
    context->set_materialize_grads(false);
    context->saved_data["on_backward"] = c10::IValue::make_capsule(on_backward);
    return output.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto capsule = context->saved_data["on_backward"].toCapsule();
    static_cast<Callback*>(capsule.get())->run();
    return {gradients[0], {}};
  }
};

}  // namespace

ReducerPair make_reducer(const ModelTensors& parameters, const Group& group,
                         const WrapperOptions& options) {
  ReducerPair pair;
  pair.reducer = construct(parameters, group, options);
  pair.logger = std::make_shared<c10d::Logger>(pair.reducer);
  pair.reducer->set_logger(pair.logger);
  pair.logger->set_construction_data_and_log("Qwen3ForCausalLM", {}, -1, options.broadcast_buffers,
                                             /*has_sync_bn=*/false, options.static_graph);
  if (options.static_graph) {
    pair.reducer->set_static_graph();
    pair.logger->set_static_graph();
  }
  register_hook(*pair.reducer, group, options.hook);
  return pair;
}

at::Tensor sink(const at::Tensor& output, const std::shared_ptr<PeekReducer>& reducer,
                bool static_graph, const std::shared_ptr<bool>& delayed) {
  const auto on_backward = [reducer, static_graph, delayed] {
    if (!static_graph || *delayed) return;
    *delayed = true;
    torch::autograd::Engine::get_default_engine().queue_callback(
        [reducer] { reducer->delay_all_reduce(); });
  };
  return Sink::apply(output, c10::make_intrusive<Callback>(on_backward));
}

}  // namespace gradcheck::native
