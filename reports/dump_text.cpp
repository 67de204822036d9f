// SPDX-License-Identifier: Apache-2.0
#include "reports/dump_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "reports/numbers.h"
#include "reports/table.h"
#include "reports/text.h"

namespace gradcheck {
namespace {

constexpr std::size_t kFiles = 8;    // named without -v
constexpr std::size_t kTensors = 5;  // likewise
constexpr std::size_t kPatterns = 4;

std::string whole(std::uint64_t count) {
  return plural(static_cast<std::int64_t>(count), "tensor");
}

std::string range_text(const UlpRow& row) {
  if (!row.to) return fmt::format("≥{}", row.from);
  if (row.from == *row.to) return fmt::format("{}", row.from);
  return fmt::format("{}–{}", row.from, *row.to);
}

// "1: 12 · 2–4: 3; largest 4", the rows without elements left out.
std::string histogram_text(const DumpReading& reading) {
  std::vector<std::string> parts;
  for (const UlpRow& row : reading.ulps) {
    if (row.elements > 0) parts.push_back(fmt::format("{}: {}", range_text(row), row.elements));
  }
  if (parts.empty()) return "";
  return fmt::format("{}; largest {}", joined(parts, " · "), reading.max_ulps.value_or(0));
}

std::string elements_text(const DumpReading& reading) {
  if (reading.differing_elements == 0) return "";
  std::string text = plural(static_cast<std::int64_t>(reading.differing_elements), "element");
  text += reading.differing_elements == 1 ? " differs" : " differ";
  const auto add = [&text](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(reading.sign_changes, "of them by sign");
  add(reading.sign_of_zero_elements, "in the sign of zero only");
  add(reading.nan_payload_elements, "in the payload of a NaN only");
  if (reading.nonfinite_elements > reading.nan_payload_elements) {
    add(reading.nonfinite_elements - reading.nan_payload_elements, "not finite on one side");
  }
  return text;
}

std::string clusters_text(const DumpReading& reading) {
  std::vector<std::string> parts;
  for (const ClusterRow& row : reading.clusters) {
    if (parts.size() == kPatterns) {
      parts.push_back(fmt::format("… {} more ways", reading.clusters.size() - kPatterns));
      break;
    }
    parts.push_back(fmt::format("{} in {}", printable(row.clusters), whole(row.tensors)));
  }
  return joined(parts, ", ");
}

std::string reference_text(const DumpReading& reading) {
  std::string text = fmt::format("{} of {} differ", reading.differed, whole(reading.tensors));
  if (reading.tolerance != "exact") {
    text += fmt::format(", {} beyond {}", reading.outside, printable(reading.tolerance));
  }
  if (reading.max_norm) {
    text += fmt::format("; largest distance {} of the norm", short_number(*reading.max_norm));
  }
  return text;
}

double badness(const DumpTensor& row) {
  return row.max_abs.value_or(std::numeric_limits<double>::infinity());
}

std::string count_text(std::uint64_t count) { return count == 0 ? "" : std::to_string(count); }

Table tensor_table(const DumpReading& reading, std::size_t most) {
  Table table;
  table.columns = {{"tensor"},
                   {"ranks"},
                   {"elements", Align::right},
                   {"max", Align::right},
                   {"ulps", Align::right},
                   {"of norm", Align::right},
                   {"NaN", Align::right},
                   {"inf", Align::right}};
  std::vector<const DumpTensor*> rows;
  for (const DumpTensor& row : reading.rows) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const DumpTensor* a, const DumpTensor* b) {
    return badness(*a) > badness(*b);
  });
  if (rows.size() > most) rows.resize(most);
  for (const DumpTensor* row : rows) {
    table.rows.push_back({printable(row->name), printable(row->clusters),
                          count_text(row->differing_elements),
                          row->max_abs ? short_number(*row->max_abs) : "",
                          row->max_ulps ? std::to_string(*row->max_ulps) : "",
                          row->norm ? short_number(*row->norm) : "", count_text(row->nan_elements),
                          count_text(row->inf_elements)});
  }
  return table;
}

void add_files(Page& page, std::size_t indent, const DumpReading& reading) {
  const bool all = page.options().verbosity > 0;
  std::size_t shown = 0;
  for (const DumpFile& file : reading.files) {
    if (!all && shown == kFiles) {
      page.labelled(indent, "", Style::dim,
                    fmt::format("… {} more files with -v", reading.files.size() - kFiles),
                    Style::dim);
      return;
    }
    ++shown;
    const std::string who =
        file.role == "reference" ? "reference" : fmt::format("{} {}", file.role, file.rank);
    page.labelled(indent, who, Style::dim,
                  fmt::format("{}   {}, {}", printable(file.path), whole(file.tensors),
                              bytes_text(static_cast<double>(file.bytes))));
  }
}

}  // namespace

void add_dumps(Page& page, std::size_t indent, const DumpReading& reading) {
  const bool verbose = page.options().verbosity > 0;
  const bool wanted = reading.differed > 0 || verbose;
  if (reading.against == "reference" && reading.tensors > 0) {
    page.labelled(indent, "reference", Style::dim, reference_text(reading));
  }
  if (!wanted) return;
  page.labelled(indent, "ranks", Style::dim, clusters_text(reading));
  page.labelled(indent, "differ", Style::dim, elements_text(reading));
  page.labelled(indent, "ulps", Style::dim, histogram_text(reading));
  if (reading.outside == 0 && !verbose) return;
  const std::size_t most = verbose ? reading.rows.size() : kTensors;
  const Table table = tensor_table(reading, most);
  if (!table.rows.empty()) page.lines(indent, lines_of(table));
  add_files(page, indent, reading);
}

}  // namespace gradcheck
