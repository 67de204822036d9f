// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/scenario.h"
#include "probes/native/wrappers/ddp.h"
#include "probes/native/wrappers/sharded_model.h"
#include "probes/native/wrappers/zero2.h"

namespace gradcheck::native {

// The wrapper of a model, whichever it is: what Policy, Trainee and Recorder need of it.
class Wrapper {
 public:
  // By the program's wrapper kind; null for `none`. Errors: std::invalid_argument.
  static std::unique_ptr<Wrapper> make(const std::string& model, const ModelTensors& parameters,
                                       const ModelTensors& buffers, const Fabric* fabric,
                                       const WrapperSpec& spec, Journal& journal);

  at::Tensor forward(const std::function<at::Tensor()>& body);
  bool inside_forward() const;
  bool armed() const;              // the next backward will be reduced
  void set_no_sync(bool no_sync);  // DDP's alone; the others reduce always
  bool no_sync() const;
  void after_backward();
  void after_step();

  // What this rank owns, by parameter; null where it owns everything.
  const std::vector<OwnedShard>* owned() const;
  // Parameters are parts, too, outside of the forward.
  bool shards_parameters() const;
  // Runs `body` while the parameters are whole, outside of any forward.
  void with_whole_parameters(const std::function<void()>& body);

 private:
  using Any =
      std::variant<std::unique_ptr<Ddp>, std::unique_ptr<Zero2>, std::unique_ptr<ShardedModel>>;
  explicit Wrapper(Any wrapper) : wrapper_(std::move(wrapper)) {}

  Any wrapper_;
};

}  // namespace gradcheck::native
