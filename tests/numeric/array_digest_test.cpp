// SPDX-License-Identifier: Apache-2.0
#include "numeric/array_digest.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gradcheck {
namespace {

const std::vector<ArrayStamp> kArrays = {{"new", DType::f32, {2, 3}, {1, 2}},
                                         {"old", DType::bf16, {2, 3}, {3, 4}}};

TEST(ArrayDigest, DoesNotDependOnTheirOrder) {
  std::vector<ArrayStamp> turned(kArrays.rbegin(), kArrays.rend());
  EXPECT_EQ(digest_of(turned), digest_of(kArrays));
}

TEST(ArrayDigest, IsWhatTheDocumentationSays) {
  EXPECT_EQ(to_hex(digest_of(std::span(kArrays).first(1))), "f916e336905c7467045085200375f984");
}

TEST(ArrayDigest, TellsKeysTypesShapesAndElementsApart) {
  const std::vector<std::vector<ArrayStamp>> others = {
      {},
      {kArrays[0]},
      {kArrays[0], {"ref", DType::bf16, {2, 3}, {3, 4}}},
      {kArrays[0], {"old", DType::f16, {2, 3}, {3, 4}}},
      {kArrays[0], {"old", DType::bf16, {3, 2}, {3, 4}}},
      {kArrays[0], {"old", DType::bf16, {6}, {3, 4}}},
      {kArrays[0], {"old", DType::bf16, {2, 3}, {3, 5}}},
  };
  for (const auto& other : others) EXPECT_NE(digest_of(other), digest_of(kArrays));
}

}  // namespace
}  // namespace gradcheck
