// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gradcheck {

// Text from tensor names, exceptions and other programs' output, made fit to be shown. All pure;
// any bytes are accepted. "Columns" are code points: close enough for names.

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;  // false: `bytes` is 1 and the byte is not part of well-formed UTF-8
};

CodePoint decode_utf8(std::string_view text);  // of the first character; text is not empty

// Control characters, direction overrides and bytes that are not UTF-8 become \n, \x1b, \u202e:
// nothing a name holds can move the cursor or break a line.
std::string printable(std::string_view text);

// Without terminal escape sequences (colours, cursor moves), as other programs print them.
std::string without_escapes(std::string_view text);

// Only characters that XML 1.0 allows; the others, bad UTF-8 and escape sequences are left out.
std::string xml_legal(std::string_view text);

// Split at line ends, trailing empty lines dropped.
std::vector<std::string> lines_of(std::string_view text);
std::vector<std::string> last_lines(std::string_view text, std::size_t count);

std::size_t columns_of(std::string_view text);
std::string pad_right(std::string text, std::size_t columns);
std::string pad_left(std::string text, std::size_t columns);
std::string shorten(std::string_view text, std::size_t columns);  // "abc…"

// Broken at spaces into lines of at most `columns`; a longer word keeps a line to itself.
// Never empty. Width 0: one line.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

std::string joined(const std::vector<std::string>& parts, std::string_view separator);

// As a POSIX shell reads it back: quoted where needed.
std::string shell_word(std::string_view text);

}  // namespace gradcheck
