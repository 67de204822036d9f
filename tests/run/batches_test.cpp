// SPDX-License-Identifier: Apache-2.0
#include "run/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcheck {
namespace {

BatchDigests two_ranks(const std::string& a, const std::string& b) {
  EvidenceTable table(2);
  for (int rank = 0; rank < 2; ++rank) {
    EventRecord event;
    event.type = EventType::batch;
    event.step = 1;
    event.digest = rank == 0 ? a : b;
    table.rank(rank).events.push_back(event);
  }
  return batches_of(table);
}

TEST(Batches, EqualDataIsNoDifference) {
  EXPECT_EQ(batches_differ(two_ranks("x", "y"), two_ranks("x", "y")), std::nullopt);
}

TEST(Batches, OtherDataIsNamedByRankAndStep) {
  const auto text = batches_differ(two_ranks("x", "y"), two_ranks("x", "z"));
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, testing::AllOf(testing::HasSubstr("rank 1"), testing::HasSubstr("step 1")));
}

TEST(Batches, AnArmThatEndedEarlyIsNoDifference) {
  EXPECT_EQ(batches_differ(two_ranks("x", "y"), {}), std::nullopt);
  EXPECT_EQ(batches_differ({}, two_ranks("x", "y")), std::nullopt);
}

}  // namespace
}  // namespace gradcheck
