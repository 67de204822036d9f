// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace gradcheck::native {

// Ranks run LibTorch on one thread; tests of their parts do too.
class OneThread : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

}  // namespace gradcheck::native
