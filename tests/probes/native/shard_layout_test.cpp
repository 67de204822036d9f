// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/shard_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace gradcheck::native {
namespace {

ModelTensors some_parameters() {
  return {{"matrix", at::zeros({5, 3})},
          {"norm", at::zeros({2})},
          {"wide", at::zeros({4, 7})},
          {"empty", at::zeros({0, 3})}};
}

constexpr Cut kCuts[] = {cut_flat, cut_each, cut_rows};

// Every element has one owner, whatever does not divide.
TEST(ShardLayout, PiecesCoverEveryParameterOnce) {
  for (const Cut cut : kCuts) {
    for (const int ranks : {1, 2, 3, 4, 7, 31}) {
      const ModelTensors parameters = some_parameters();
      const ShardLayout layout = cut(parameters, ranks);
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        std::int64_t covered = 0;
        for (const auto& pieces : layout.ranks) {
          const Piece& piece = pieces.at(i);
          EXPECT_TRUE(piece.numel == 0 || piece.offset == covered) << piece.offset;
          covered += piece.numel;
        }
        EXPECT_EQ(covered, parameters[i].value.numel()) << ranks;
      }
    }
  }
}

TEST(ShardLayout, PiecesOfARankLieApartInItsPart) {
  for (const Cut cut : kCuts) {
    for (const int ranks : {1, 2, 3, 7}) {
      const ShardLayout layout = cut(some_parameters(), ranks);
      for (const auto& pieces : layout.ranks) {
        std::int64_t end = 0;
        for (const Piece& piece : pieces) {
          if (piece.numel == 0) continue;
          EXPECT_GE(piece.position, end);
          end = piece.position + piece.numel;
        }
        EXPECT_LE(end, layout.part);
      }
    }
  }
}

TEST(ShardLayout, RowsAreNotCut) {
  const ShardLayout layout = cut_rows(some_parameters(), 2);
  EXPECT_EQ(layout.ranks[0][0].numel, 9);  // three of five rows
  EXPECT_EQ(layout.ranks[1][0].numel, 6);
}

TEST(ShardLayout, ARankMayOwnNothing) {
  const ShardLayout layout = cut_each(some_parameters(), 3);
  EXPECT_EQ(layout.ranks[2][1].numel, 0);  // of two elements
}

}  // namespace
}  // namespace gradcheck::native
