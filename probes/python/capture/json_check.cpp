// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/json_check.h"

#include <cstdint>
#include <string>

#include "evidence/write/json_line.h"

namespace gradcheck::capture {
namespace {

constexpr int kMaxDepth = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent; each function consumes what it names, or returns false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool document() {
    skip_space();
    if (!starts_with('{') || !value(0)) return false;
    skip_space();
    return rest_.empty();
  }

 private:
  bool starts_with(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool take(char c) {
    if (!starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_space() {
    while (take(' ') || take('\t')) {
    }
  }

  bool value(int depth) {
    skip_space();
    if (depth > kMaxDepth || rest_.empty()) return false;
    switch (rest_.front()) {
      case '{':
        return list('{', '}', depth, /*has_keys=*/true);
      case '[':
        return list('[', ']', depth, /*has_keys=*/false);
      case '"':
        return string();
      case 't':
        return take_word("true");
      case 'f':
        return take_word("false");
      case 'n':
        return take_word("null");
      default:
        return number();
    }
  }

  bool list(char open, char close, int depth, bool has_keys) {
    take(open);
    skip_space();
    if (take(close)) return true;
    do {
      if (has_keys && !key()) return false;
      if (!value(depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take(close);
  }

  bool key() {
    skip_space();
    if (!string()) return false;
    skip_space();
    return take(':');
  }

  bool digits() {
    if (rest_.empty() || !is_digit(rest_.front())) return false;
    while (!rest_.empty() && is_digit(rest_.front())) rest_.remove_prefix(1);
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }

  bool string() {
    if (!take('"')) return false;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    const std::int32_t first = code_unit();
    if (first < 0xD800 || first > 0xDFFF) return first >= 0;
    if (first > 0xDBFF || !take_word("\\u")) return false;
    const std::int32_t second = code_unit();
    return second >= 0xDC00 && second <= 0xDFFF;
  }

  std::int32_t code_unit() {  // −1: not four hexadecimal digits
    constexpr std::string_view kHex = "0123456789abcdef";
    std::int32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = rest_.empty() ? '?' : rest_.front();
      const auto digit = kHex.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos) return -1;
      unit = unit * 16 + static_cast<std::int32_t>(digit);
      rest_.remove_prefix(1);
    }
    return unit;
  }

  std::string_view rest_;
};

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all = static_cast<unsigned char>(all | static_cast<unsigned char>(c));
  return all < 0x80;
}

}  // namespace

bool is_json_object(std::string_view text) {
  return Scanner(text).document() && (is_ascii(text) || valid_utf8(text) == text);
}

}  // namespace gradcheck::capture
