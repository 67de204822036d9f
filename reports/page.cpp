// SPDX-License-Identifier: Apache-2.0
#include "reports/page.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "reports/text.h"

namespace gradcheck {

void Page::paragraph(std::size_t indent, std::string_view text, Style style) {
  const std::size_t room = options_.width == 0 ? 0 : columns_behind(indent);
  lines(indent, wrap(text, room), style);
}

void Page::labelled(std::size_t indent, std::string_view label, Style label_style,
                    std::string_view text, Style text_style) {
  if (text.empty()) return;
  const std::size_t behind = indent + std::max(kLabelColumns, columns_of(label) + 1);
  const std::size_t room = options_.width == 0 ? 0 : columns_behind(behind);
  std::string start = std::string(indent, ' ') + paint(label, label_style) +
                      std::string(behind - indent - columns_of(label), ' ');
  for (const std::string& part : wrap(text, room)) {
    line(start + paint(part, text_style));
    start.assign(behind, ' ');
  }
}

void Page::lines(std::size_t indent, const std::vector<std::string>& lines, Style style) {
  for (const std::string& text : lines) line(std::string(indent, ' ') + paint(text, style));
}

std::string Page::paint(std::string_view text, Style style) const {
  return gradcheck::paint(text, style, options_.colour);
}

std::size_t Page::columns_behind(std::size_t indent) const {
  constexpr std::size_t kLeast = 20;
  if (options_.width == 0) return std::numeric_limits<std::size_t>::max();
  return options_.width > indent + kLeast ? options_.width - indent : kLeast;
}

std::string Page::take() { return std::exchange(text_, {}); }

}  // namespace gradcheck
