// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "evidence/read/array_formats.h"
#include "evidence/read/mapped_file.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

// One object a line; its lists of numbers are a row each of the array of that name. A list of one
// row may be shorter than that of another. `null` is how JSON writes a number that is not finite,
// and is read as NaN: it is counted, not guessed. Everything that is no list of numbers is skipped.

using simdjson::dom::element;

struct Column {
  std::vector<double> values;
  std::vector<std::size_t> offsets = {0};
  bool has_numbers = false;  // lists that are all empty may be of anything
  bool is_late = false;      // earlier rows are without it
};
using Columns = std::map<std::string, Column>;
using Incomplete = std::map<std::string, std::string>;

[[noreturn]] void refuse(const std::string& why) { throw InfrastructureError(why); }

double number_in(element value, std::string_view key, std::size_t index) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  bool truth = false;
  if (value.get(truth) == simdjson::SUCCESS) return truth ? 1 : 0;
  refuse("'" + std::string(key) + "' has no number at " + std::to_string(index));
}

bool holds_numbers(simdjson::dom::array list) {
  for (const element value : list)
    return !value.is_string() && !value.is_array() && !value.is_object();
  return true;
}

void add_list(Columns& columns, std::string_view key, simdjson::dom::array list,
              std::size_t rows_before) {
  const auto [at, is_new] = columns.try_emplace(std::string(key));
  Column& column = at->second;
  if (is_new) column.is_late = rows_before > 0;
  std::size_t index = 0;
  for (const element value : list) column.values.push_back(number_in(value, key, index++));
  column.has_numbers |= index > 0;
  if (column.is_late && column.has_numbers) {
    refuse("'" + std::string(key) + "' is missing in earlier rows");
  }
  column.offsets.push_back(column.values.size());
}

// The one number that is a row's own.
constexpr std::string_view kMicroBatch = "micro_batch";

void add_number(Columns& columns, double number, std::size_t rows_before) {
  const auto [at, is_new] = columns.try_emplace(std::string(kMicroBatch));
  Column& column = at->second;
  if (is_new && rows_before > 0) refuse("'micro_batch' is missing in earlier rows");
  column.values.push_back(number);
  column.offsets.push_back(column.values.size());
  column.has_numbers = true;
}

// A list that was empty so far and is now of something else was none of numbers.
void settle(Columns& columns, Incomplete& incomplete, std::size_t rows) {
  for (const auto& [key, column] : columns) {
    if (column.has_numbers && column.offsets.size() != rows + 1) refuse("'" + key + "' is missing");
  }
  std::erase_if(columns, [&](const auto& entry) {
    const auto& [key, column] = entry;
    if (column.is_late || column.offsets.size() == rows + 1) return false;
    incomplete.try_emplace(key, "row " + std::to_string(rows - 1) + ": '" + key +
                                    "' is missing, or no list of numbers");
    return true;
  });
}

void add_row(Columns& columns, Incomplete& incomplete, simdjson::dom::object row,
             std::size_t rows_before) {
  std::set<std::string_view> seen;
  for (const auto field : row) {
    if (!seen.insert(field.key).second) refuse("key '" + std::string(field.key) + "' occurs twice");
    simdjson::dom::array list;
    double number = 0;
    if (field.key == kMicroBatch && field.value.get(number) == simdjson::SUCCESS) {
      add_number(columns, number, rows_before);
      continue;
    }
    if (field.value.get(list) != simdjson::SUCCESS || !holds_numbers(list)) continue;
    add_list(columns, field.key, list, rows_before);
  }
  settle(columns, incomplete, rows_before + 1);
}

void add_line(simdjson::dom::parser& parser, std::string_view line, Columns& columns,
              Incomplete& incomplete, std::size_t rows_before) {
  simdjson::dom::object row;
  const auto error = parser.parse(line.data(), line.size()).get(row);
  if (error == simdjson::INCORRECT_TYPE) refuse("not an object");
  if (error != simdjson::SUCCESS)
    refuse(std::string("not JSON (nor are NaN, Infinity and numbers beyond double): ") +
           simdjson::error_message(error));
  add_row(columns, incomplete, row, rows_before);
}

Columns columns_of(std::string_view text, Incomplete& incomplete) {
  simdjson::dom::parser parser;
  Columns columns;
  std::size_t line = 0, rows = 0, at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    try {
      if (end > at) add_line(parser, text.substr(at, end - at), columns, incomplete, rows);
    } catch (const InfrastructureError& error) {
      refuse("row " + std::to_string(line - 1) + " (line " + std::to_string(line) + ", byte " +
             std::to_string(at) + "): " + error.what());
    }
    rows += end > at && !columns.empty() ? 1 : 0;  // what stands before the first list is no row
    at = end + 1;
  }
  std::erase_if(columns, [&](const auto& entry) {
    const auto& [key, column] = entry;
    if (column.is_late) incomplete.try_emplace(key, "row 0: '" + key + "' is missing");
    return column.is_late;
  });
  return columns;
}

}  // namespace

ArrayFile open_json_lines(const std::string& path) {
  const MappedFile text(path);
  const auto bytes = text.bytes();
  ArrayFile file;
  auto columns = std::make_shared<Columns>(
      columns_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.incomplete));
  for (const auto& [name, column] : *columns) {
    file.arrays.emplace(
        name, NamedArray{DType::f64, {}, column.offsets, std::as_bytes(std::span(column.values))});
  }
  file.storage = std::move(columns);
  return file;
}

}  // namespace gradcheck
