// SPDX-License-Identifier: Apache-2.0
#include "launch/output_tail.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

TEST(OutputTail, KeepsTheEnd) {
  std::string tail;
  keep_tail(tail, std::string(kOutputTail, 'a'));
  keep_tail(tail, "the end");
  EXPECT_EQ(tail.size(), kOutputTail);
  EXPECT_TRUE(tail.ends_with("athe end"));
}

TEST(OutputTail, OfMoreThanItHoldsKeepsTheEnd) {
  std::string tail = "before";
  keep_tail(tail, std::string(2 * kOutputTail, 'a') + "b");
  EXPECT_EQ(tail.size(), kOutputTail);
  EXPECT_TRUE(tail.ends_with("ab"));
}

}  // namespace
}  // namespace gradcheck
