// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "probes/native/losses/log_probs.h"

namespace gradcheck::native {

// Sums run in float32, in float64 for float64 inputs.
at::ScalarType accumulate_type(const at::Tensor& tensor);

// What follows the matrix product: scale, softcap, temperature, in the dtype of `product`.
at::Tensor final_logits(const at::Tensor& product, const LogProbOptions& options);

// d final_logits / d product, element by element, given the final logits.
at::Tensor final_logits_slope(const at::Tensor& final, const LogProbOptions& options);

}  // namespace gradcheck::native
