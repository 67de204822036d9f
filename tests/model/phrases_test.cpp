// SPDX-License-Identifier: Apache-2.0
#include "model/phrases.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace gradcheck {
namespace {

TEST(Phrases, Ranks) {
  EXPECT_EQ(ranks_text(std::vector<int>{}), "");
  EXPECT_EQ(ranks_text(std::vector<int>{1}), "rank 1");
  EXPECT_EQ(ranks_text(std::vector<int>{0, 1, 3}), "ranks 0, 1, 3");
}

TEST(Phrases, Signals) {
  EXPECT_EQ(signal_text(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_text(999), "signal 999");
}

}  // namespace
}  // namespace gradcheck
