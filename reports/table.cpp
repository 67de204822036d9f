// SPDX-License-Identifier: Apache-2.0
#include "reports/table.h"

#include <algorithm>
#include <cstddef>

#include "reports/text.h"

namespace gradcheck {
namespace {

const std::string& cell_at(const std::vector<std::string>& row, std::size_t column) {
  static const std::string kEmpty;
  return column < row.size() ? row[column] : kEmpty;
}

bool says_anything(const Table& table, std::size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [column](const auto& row) { return !cell_at(row, column).empty(); });
}

std::size_t width_of(const Table& table, std::size_t column) {
  std::size_t width = columns_of(table.columns[column].title);
  for (const auto& row : table.rows) width = std::max(width, columns_of(row[column]));
  return width;
}

std::string line_of(const Table& table, const std::vector<std::size_t>& widths,
                    const std::vector<std::string>& row) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (i > 0) line += "  ";
    line += table.columns[i].align == Align::left ? pad_right(row[i], widths[i])
                                                  : pad_left(row[i], widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

Table without_empty_columns(const Table& table) {
  Table result;
  result.rows.resize(table.rows.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!says_anything(table, i)) continue;
    result.columns.push_back(table.columns[i]);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      result.rows[row].push_back(cell_at(table.rows[row], i));
    }
  }
  return result;
}

std::vector<std::string> lines_of(const Table& table) {
  if (table.rows.empty()) return {};
  const Table shown = without_empty_columns(table);
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < shown.columns.size(); ++i) {
    widths.push_back(width_of(shown, i));
    titles.push_back(shown.columns[i].title);
  }
  std::vector<std::string> lines = {line_of(shown, widths, titles)};
  for (const auto& row : shown.rows) lines.push_back(line_of(shown, widths, row));
  return lines;
}

}  // namespace gradcheck
