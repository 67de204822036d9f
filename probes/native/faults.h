// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/record.h"
#include "model/scenario.h"
#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// What is done to the program on purpose, as this rank sees it (kinds and phases:
// model/native_parts.h). `raise`, `kill`, `hang` and `exit` strike once, in the fault's step; the
// others last from that step on. Without a fault every question is answered no.
class Faults {
 public:
  Faults(std::optional<Fault> fault, int rank);

  // Throws std::runtime_error, dies, stops for ever, or returns: the usual case.
  void strike(std::string_view phase, std::int64_t step) const;
  bool strikes_in(std::string_view phase) const;

  bool hides_local(std::string_view tensor, std::int64_t step) const;
  bool hides_mark(Stage stage, std::int64_t step) const;
  bool skips_reduction(std::int64_t step) const;
  bool corrupts_reduction(std::int64_t step) const;
  bool corrupts_shard(std::int64_t step) const;
  bool overflows(std::int64_t step) const;  // strikes once
  bool keeps_gradients(std::int64_t step) const;
  // Whether this tensor is to be perturbed in this step.
  bool corrupts_buffer(std::string_view tensor, std::int64_t step) const;

 private:
  bool lasts(std::string_view kind, std::int64_t step) const;

  std::optional<Fault> fault_;  // empty on ranks it does not concern
  int rank_;
};

// Errors: std::invalid_argument for a fault on a parameter or buffer that the model does not have.
void check_target(const std::optional<Fault>& fault, const ModelTensors& parameters,
                  const ModelTensors& buffers);

}  // namespace gradcheck::native
