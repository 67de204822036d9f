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
// than the header.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Without the columns in which no cell says anything; every row as long as the header.
Table without_empty_columns(const Table& table);

// Title line first, no trailing spaces, no empty columns. Empty where there are no rows.
std::vector<std::string> lines_of(const Table& table);

}  // namespace gradcheck
