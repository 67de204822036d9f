// SPDX-License-Identifier: Apache-2.0
#include "launch/line_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> lines_of(const std::vector<std::string>& pieces,
                                  std::size_t longest = 64) {
  LineBuffer buffer(longest);
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    buffer.feed(piece, [&](std::string_view line) { lines.emplace_back(line); });
  }
  return lines;
}

TEST(LineBuffer, JoinsPieces) {
  EXPECT_THAT(lines_of({"a", "b\nc\n", "\nd"}), ElementsAre("ab", "c", ""));
}

TEST(LineBuffer, KeepsWhatFollowsTheLastNewline) {
  LineBuffer buffer(64);
  buffer.feed("one\ntwo", [](std::string_view) {});
  EXPECT_EQ(buffer.rest(), "two");
}

TEST(LineBuffer, HandsOnWhatIsTooLongForALine) {
  EXPECT_THAT(lines_of({std::string(10, 'x')}, 8), ElementsAre(std::string(10, 'x')));
  EXPECT_THAT(lines_of({std::string(8, 'x')}, 8), IsEmpty());
}

}  // namespace
}  // namespace gradcheck
