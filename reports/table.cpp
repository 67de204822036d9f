// SPDX-License-Identifier: Apache-2.0
#include "reports/table.h"

#include <algorithm>
#include <cstddef>

#include "reports/text.h"

namespace gradcheck {
namespace {

const std::string& cell_at(const std::vector<std::string>& row, std::size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column] : empty;
}

// 0: nothing stands in this column.
std::size_t width_of(const Table& table, std::size_t column) {
  std::size_t width = 0;
  for (const auto& row : table.rows) width = std::max(width, columns_of(cell_at(row, column)));
  return width == 0 ? 0 : std::max(width, columns_of(table.columns[column].title));
}

std::string line_of(const Table& table, const std::vector<std::size_t>& widths,
                    const std::vector<std::string>& row) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) continue;
    if (!line.empty()) line += "  ";
    const std::string& cell = cell_at(row, i);
    line += table.columns[i].align == Align::left ? pad_right(cell, widths[i])
                                                  : pad_left(cell, widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> lines_of(const Table& table) {
  if (table.rows.empty()) return {};
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(width_of(table, i));
    titles.push_back(table.columns[i].title);
  }
  std::vector<std::string> lines = {line_of(table, widths, titles)};
  for (const auto& row : table.rows) lines.push_back(line_of(table, widths, row));
  return lines;
}

}  // namespace gradcheck
