// SPDX-License-Identifier: Apache-2.0
#include "reports/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradcheck {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::size_t length_from_lead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Overlong forms and surrogates are not UTF-8 (RFC 3629).
bool is_scalar(char32_t value, std::size_t bytes) {
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value >= kSmallest[bytes] && value <= 0x10FFFF && !surrogate;
}

bool is_control(char32_t value) { return value < 0x20 || (value >= 0x7F && value < 0xA0); }

// Invisible characters that reorder or end a line: a name could pretend to be another.
bool is_deceptive(char32_t value) {
  return (value >= 0x200B && value <= 0x200F) || (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2066 && value <= 0x2069) || value == 0xFEFF;
}

// The production Char of XML 1.0, less the C1 controls it discourages.
bool is_xml_char(char32_t value) {
  if (value == '\t' || value == '\n' || value == '\r') return true;
  return !is_control(value) && value != 0xFFFE && value != 0xFFFF;
}

std::string escaped(char32_t value) {
  switch (value) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return value < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(value))
                          : fmt::format("\\u{:04x}", static_cast<unsigned>(value));
  }
}

// Bytes of the escape sequence at the front of `text`, which starts with ESC (ECMA-48).
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    const auto end =
        std::find_if(text.begin() + 2, text.end(), [](char c) { return c >= 0x40 && c <= 0x7E; });
    return static_cast<std::size_t>(end - text.begin()) + (end == text.end() ? 0 : 1);
  }
  if (text[1] != ']') return 2;
  const std::size_t end = text.find_first_of("\a\x1b", 2);
  if (end == text.npos) return text.size();
  return end + (text[end] == '\a' ? 1 : 2);
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = length_from_lead(lead);
  if (bytes == 0 || bytes > text.size()) return {lead, 1, false};
  char32_t value = bytes == 1 ? lead : lead & (0xFF >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!is_continuation(text[i])) return {lead, 1, false};
    value = (value << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  if (!is_scalar(value, bytes)) return {lead, 1, false};
  return {value, bytes, true};
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint point = decode_utf8(text);
    if (!point.valid) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(point.value));
    } else if (is_control(point.value) || is_deceptive(point.value)) {
      result += escaped(point.value);
    } else {
      result += text.substr(0, point.bytes);
    }
    text.remove_prefix(point.bytes);
  }
  return result;
}

std::string without_escapes(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t start = std::min(text.find('\x1b'), text.size());
    result += text.substr(0, start);
    text.remove_prefix(start);
    if (!text.empty()) text.remove_prefix(std::min(escape_length(text), text.size()));
  }
  return result;
}

std::string xml_legal(std::string_view text) {
  const std::string bare = without_escapes(text);
  std::string result;
  for (std::string_view rest = bare; !rest.empty();) {
    const CodePoint point = decode_utf8(rest);
    if (point.valid && is_xml_char(point.value)) result += rest.substr(0, point.bytes);
    rest.remove_prefix(point.bytes);
  }
  return result;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> last_lines(std::string_view text, std::size_t count) {
  std::vector<std::string> lines = lines_of(text);
  const std::size_t extra = lines.size() > count ? lines.size() - count : 0;
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(extra));
  return lines;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

std::string pad_right(std::string text, std::size_t columns) {
  const std::size_t have = columns_of(text);
  if (have < columns) text.append(columns - have, ' ');
  return text;
}

std::string pad_left(std::string text, std::size_t columns) {
  const std::size_t have = columns_of(text);
  if (have < columns) text.insert(0, columns - have, ' ');
  return text;
}

std::string shorten(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  std::string result;
  for (std::size_t used = 1; used < columns; ++used) {
    const std::size_t bytes = decode_utf8(text).bytes;
    result += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return result + "…";
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines = {""};
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t width = columns_of(word);
    const bool full = columns > 0 && used > 0 && used + 1 + width > columns;
    if (full) lines.emplace_back();
    if (used > 0 && !full) lines.back() += ' ';
    used = full ? width : used + width + (used > 0 ? 1 : 0);
    lines.back() += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace gradcheck
