// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradcheck::native {

// LibTorch's own autocast on the CPU, in bfloat16, as long as it lives. Matrix products run in
// bfloat16 as on CUDA. log_softmax stays coarse where CUDA's policy makes it float32: who wants
// that widens the logits.
class Autocast {
 public:
  explicit Autocast(bool on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
};

}  // namespace gradcheck::native
