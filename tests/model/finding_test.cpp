// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

TEST(Codes, AreAscendingAndUnique) {
  for (std::size_t i = 1; i < all_codes().size(); ++i) {
    EXPECT_LT(all_codes()[i - 1].code, all_codes()[i].code);
  }
}

TEST(Codes, RoundTripAsText) {
  for (const CodeInfo& info : all_codes()) {
    EXPECT_EQ(find_code(info.code), &info);
    EXPECT_EQ(code_from_text(code_text(info.code)), info.code);
  }
}

TEST(Codes, OtherTextIsNoCode) {
  for (const char* text : {"", "GC", "201", "gc201", "GC201 ", "GC 201", "GC-201", "GC999",
                           "GC0201x", "GC99999999999999999999"}) {
    EXPECT_EQ(code_from_text(text), std::nullopt) << text;
  }
  EXPECT_EQ(find_code(0), nullptr);
}

TEST(Codes, HaveATitleInLowerCaseAndAHintThatIsASentence) {
  for (const CodeInfo& info : all_codes()) {
    ASSERT_FALSE(info.title.empty());
    EXPECT_FALSE(info.title.ends_with('.')) << info.code;
    EXPECT_FALSE(info.title.front() >= 'A' && info.title.front() <= 'Z') << info.code;
    EXPECT_TRUE(info.hint.ends_with('.')) << info.code;
  }
}

TEST(Causes, StandInTheOrderOfTheEnumeration) {
  for (std::size_t i = 0; i < all_causes().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(all_causes()[i].cause), i);
    EXPECT_EQ(&info_of(static_cast<Cause>(i)), &all_causes()[i]);
  }
  EXPECT_EQ(all_causes().back().cause, Cause::unexplained);
}

TEST(Causes, HaveAClauseAndANextStep) {
  for (const CauseInfo& info : all_causes()) {
    EXPECT_FALSE(info.summary.empty()) << info.name;
    EXPECT_FALSE(info.summary.ends_with('.')) << info.name;
    EXPECT_TRUE(info.next.ends_with('.')) << info.name;
  }
}

}  // namespace
}  // namespace gradcheck
