// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace gradcheck {

enum class Align : bool { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

// Rows of text with aligned columns, two spaces apart. Cells are printable; a row may be shorter
// than the header. A column without a single cell that is not empty is left out.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Title line first, no trailing spaces. Empty where there are no rows.
std::vector<std::string> lines_of(const Table& table);

}  // namespace gradcheck
