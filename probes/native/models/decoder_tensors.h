// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "probes/native/models/decoder_config.h"
#include "probes/native/models/model_tensor.h"

namespace gradcheck::native {

// A linear map, with what may hang on it. Undefined where the model has no such tensor.
struct Projection {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor lora_a;  // random
  at::Tensor lora_b;  // zero, so that the adapter adds nothing at first
};

struct Expert {
  at::Tensor gate, up, down;
};

struct LayerTensors {
  Projection q, k, v, o;
  at::Tensor q_norm, k_norm;
  at::Tensor router;            // mixture of experts only
  std::vector<Expert> experts;  // one where there is no mixture
  at::Tensor input_norm, post_norm;
};

// Every tensor of a decoder, by its place in the network and in the order and under the names of
// the original's `named_parameters()`. A tied head is the embedding's own tensor.
struct DecoderTensors {
  ModelTensors parameters;
  ModelTensors buffers;
  at::Tensor embedding;
  std::vector<LayerTensors> layers;
  at::Tensor norm;
  at::Tensor head;
  Projection value;
};

// Equal seeds give equal tensors, whatever the rank. `dtype` is that of the parameters.
DecoderTensors make_tensors(const DecoderConfig& config, std::uint64_t seed, at::ScalarType dtype);

}  // namespace gradcheck::native
