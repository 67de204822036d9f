// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/graph_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcheck::native {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GraphSplitter, CutsBeforeTheNodeThatFillsTheFirstBucket) {
  EXPECT_THAT(split_points({0, kFirstBucketCap, 0, 0}), ElementsAre(1));
}

TEST(GraphSplitter, LeavesAGraphBelowTheCapWhole) {
  EXPECT_THAT(split_points({0, kFirstBucketCap - 1, 0}), IsEmpty());
}

TEST(GraphSplitter, HasNothingToCutBeforeTheFirstNode) {
  EXPECT_THAT(split_points({kFirstBucketCap, 0}), IsEmpty());
}

TEST(GraphSplitter, GivesLaterBucketsTheLargerCap) {
  EXPECT_THAT(split_points({0, kFirstBucketCap, kFirstBucketCap, 0}), ElementsAre(2));
  EXPECT_THAT(split_points({0, kBucketCap, kFirstBucketCap, 0}), ElementsAre(1, 2));
}

TEST(GraphSplitter, AsksOrdinaryTensorsWithoutHarm) {
  EXPECT_NO_THROW(split_graph({{at::zeros({2})}, {at::zeros({2}), kFirstBucketCap}, {}}));
}

}  // namespace
}  // namespace gradcheck::native
