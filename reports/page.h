// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reports/colour.h"

namespace gradcheck {

// How the console report is laid out.
struct ConsoleOptions {
  bool colour = false;      // decided by use_colour()
  bool quiet = false;       // verdict lines and the summary only
  int verbosity = 0;        // 0: what failed; 1 (-v): every tensor, rank and event; 2: whole logs
  std::size_t width = 160;  // columns; 0: never break a line
};

// Lines being laid out for a terminal. What is added must be printable; breaking and padding are
// reckoned on the bare text, colour comes last.
class Page {
 public:
  explicit Page(const ConsoleOptions& options) : options_(options) {}

  void line(std::string_view text = "") { (text_ += text) += '\n'; }

  // Broken at spaces so that it fits, every line `indent` columns in.
  void paragraph(std::size_t indent, std::string_view text, Style style = Style::plain);

  // "label  text", the text broken and aligned behind the label's column. An empty text adds
  // nothing.
  void labelled(std::size_t indent, std::string_view label, Style label_style,
                std::string_view text, Style text_style = Style::plain);

  void lines(std::size_t indent, const std::vector<std::string>& lines, Style style = Style::plain);

  std::string paint(std::string_view text, Style style) const;
  std::size_t columns_behind(std::size_t indent) const;  // room for text, at least 20
  const ConsoleOptions& options() const { return options_; }
  std::string take();  // what was added since the last take

  static constexpr std::size_t kLabelColumns = 10;

 private:
  ConsoleOptions options_;
  std::string text_;
};

}  // namespace gradcheck
