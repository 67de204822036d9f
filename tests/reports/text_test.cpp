// SPDX-License-Identifier: Apache-2.0
#include "reports/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Text, ControlCharactersBecomeVisible) {
  EXPECT_EQ(printable("a\nb\r\t\x1b[2J\x7f"), "a\\nb\\r\\t\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x85|\xe2\x80\xae|\xef\xbb\xbf"), "\\u0085|\\u202e|\\ufeff");
  EXPECT_EQ(printable("ü 梯度 😀"), "ü 梯度 😀");
}

TEST(Text, BadUtf8IsShownByteByByte) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("a\xe2\x82"), "a\\xe2\\x82");  // cut
}

TEST(Text, EscapeSequencesOfOtherProgramsGo) {
  EXPECT_EQ(without_escapes("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(without_escapes("\x1b]0;title\x07text"), "text");
  EXPECT_EQ(without_escapes("\x1b]0;title\x1b\\text"), "text");
  EXPECT_EQ(without_escapes("cut\x1b["), "cut");
  EXPECT_EQ(without_escapes("cut\x1b]0;t"), "cut");
  EXPECT_EQ(without_escapes("cut\x1b"), "cut");
}

TEST(Text, OnlyLegalXmlCharactersStay) {
  EXPECT_EQ(xml_legal("a\tb\nc\x01\x1b[0m\xff\xef\xbf\xbf<ü"), "a\tb\nc<ü");
}

TEST(Text, Lines) {
  EXPECT_THAT(lines_of("a\r\n\nb\n\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(last_lines("a\nb\nc", 2), ElementsAre("b", "c"));
  EXPECT_THAT(last_lines("a", 2), ElementsAre("a"));
}

TEST(Text, WidthsAreCodePoints) {
  EXPECT_EQ(columns_of("梯度ü"), 3U);
  EXPECT_EQ(pad_right("ü", 3), "ü  ");
  EXPECT_EQ(pad_left("ü", 3), "  ü");
  EXPECT_EQ(pad_left("long", 3), "long");
  EXPECT_EQ(shorten("梯度梯度", 3), "梯度…");
  EXPECT_EQ(shorten("abc", 3), "abc");
}

TEST(Text, Wrap) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("unbreakable a", 4), ElementsAre("unbreakable", "a"));
  EXPECT_THAT(wrap("one two", 0), ElementsAre("one two"));
  EXPECT_THAT(wrap("", 7), ElementsAre(""));
}

TEST(Text, ShellWords) {
  EXPECT_EQ(shell_word("kto_liger_ddp"), "kto_liger_ddp");
  EXPECT_EQ(shell_word("a[ranks=4]"), "'a[ranks=4]'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace gradcheck
