// SPDX-License-Identifier: Apache-2.0
#include "run/log_prob_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "evidence/read/array_file.h"
#include "model/errors.h"
#include "numeric/widen.h"
#include "run/log_prob_names.h"

namespace gradcheck {
namespace {

constexpr double kMaxTokenId = 1e15;  // a double counts so far without gaps

using Files = std::map<std::string, std::shared_ptr<const ArrayFile>>;

// One array with a name for messages: "dump.npz:old".
struct Picked {
  std::string name;
  std::shared_ptr<const ArrayFile> file;
  const NamedArray* array = nullptr;
};

// An array row by row, widened.
struct Rows {
  std::string name;
  std::vector<std::size_t> offsets;
  std::vector<double> values;
};

std::shared_ptr<const ArrayFile> opened(Files& files, const std::string& path) {
  std::error_code error_code;  // one file under two names is one file: old may be new
  const auto known = std::filesystem::weakly_canonical(path, error_code);
  std::shared_ptr<const ArrayFile>& file = files[error_code ? path : known.string()];
  if (file != nullptr) return file;
  try {
    file = std::make_shared<ArrayFile>(open_array_file(path));
  } catch (const InfrastructureError& error) {
    throw UsageError(error.what());
  }
  return file;
}

Picked picked(std::shared_ptr<const ArrayFile> file, const std::string& name) {
  const auto at = file->arrays.find(name);
  const auto incomplete = file->incomplete.find(name);
  if (incomplete != file->incomplete.end()) {
    throw UsageError(file->path + ": " + incomplete->second);
  }
  if (at == file->arrays.end()) throw UsageError(file->path + ": there is no array '" + name + "'");
  return {file->path + ":" + name, file, &at->second};
}

// PATH, or PATH:NAME where there is no file of the whole name.
Picked picked(Files& files, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool named = colon != std::string::npos && !std::filesystem::exists(text);
  if (named) return picked(opened(files, text.substr(0, colon)), text.substr(colon + 1));
  auto file = opened(files, text);
  if (file->arrays.size() != 1) {
    throw UsageError(
        fmt::format("{}: it holds {} arrays; write {}:NAME", text, file->arrays.size(), text));
  }
  return picked(file, file->arrays.begin()->first);
}

template <class Integer>
double integer_at(std::span<const std::byte> bytes, std::size_t i) {
  return static_cast<double>(load_bits<Integer>(bytes.data() + i * sizeof(Integer)));
}

double element_at(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  switch (dtype) {
    case DType::i64:
      return integer_at<std::int64_t>(bytes, i);
    case DType::i32:
      return integer_at<std::int32_t>(bytes, i);
    case DType::i16:
      return integer_at<std::int16_t>(bytes, i);
    case DType::i8:
      return integer_at<std::int8_t>(bytes, i);
    default:
      return integer_at<std::uint8_t>(bytes, i);
  }
}

template <class Type>
std::vector<double> widened_as(std::span<const std::byte> bytes) {
  using Bits = typename Type::Bits;
  std::vector<double> values(bytes.size() / sizeof(Bits));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = Type::widen(load_bits<Bits>(bytes.data() + i * sizeof(Bits)));
  }
  return values;
}

std::vector<double> widened(const Picked& from) {
  const DType dtype = from.array->dtype;
  const auto bytes = from.array->bytes;
  if (is_measured(dtype)) {
    return visit_measured(dtype, [&](auto type) { return widened_as<decltype(type)>(bytes); });
  }
  const bool integer = dtype == DType::i64 || dtype == DType::i32 || dtype == DType::i16 ||
                       dtype == DType::i8 || dtype == DType::u8 || dtype == DType::boolean;
  if (!integer) throw UsageError(fmt::format("{}: type {} is not read", from.name, name_of(dtype)));
  std::vector<double> values(bytes.size() / size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_at(dtype, bytes, i);
  return values;
}

std::vector<std::size_t> offsets_of(const Picked& from) {
  if (from.array->is_ragged()) return from.array->offsets;
  const auto& shape = from.array->shape;
  if (shape.empty() || shape.size() > 2) {
    throw UsageError(
        fmt::format("{}: {} dimensions; rows × tokens are wanted", from.name, shape.size()));
  }
  const auto tokens = static_cast<std::size_t>(shape.back());
  const auto rows = shape.size() == 2 ? static_cast<std::size_t>(shape.front()) : 1;
  if (tokens == 0) throw UsageError(from.name + ": its rows are empty");
  std::vector<std::size_t> offsets(rows + 1);
  for (std::size_t row = 0; row <= rows; ++row) offsets[row] = row * tokens;
  return offsets;
}

Rows rows_of(const Picked& from) { return {from.name, offsets_of(from), widened(from)}; }

std::size_t length(const std::vector<std::size_t>& offsets, std::size_t row) {
  return offsets[row + 1] - offsets[row];
}

void require_alike(const std::vector<std::size_t>& offsets, const std::string& name,
                   const Rows& other) {
  if (other.offsets.size() != offsets.size()) {
    throw UsageError(fmt::format("{} has {} rows, {} has {}", name, offsets.size() - 1, other.name,
                                 other.offsets.size() - 1));
  }
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    if (length(offsets, row) == length(other.offsets, row)) continue;
    throw UsageError(fmt::format("row {}: {} tokens in {}, {} in {}", row, length(offsets, row),
                                 name, length(other.offsets, row), other.name));
  }
}

// Masks of whole sequences often cover one token more than log-probs, the first, which nothing
// predicts.
void drop_first_column(const std::vector<std::size_t>& offsets, Rows& mask) {
  const bool wider = mask.offsets.size() == offsets.size() && offsets.size() > 1 &&
                     length(mask.offsets, 0) == length(offsets, 0) + 1;
  if (!wider) return;
  Rows cut{mask.name, {0}, {}};
  for (std::size_t row = 0; row + 1 < mask.offsets.size(); ++row) {
    const auto begin = mask.values.begin() + static_cast<std::ptrdiff_t>(mask.offsets[row]) + 1;
    const auto end = mask.values.begin() + static_cast<std::ptrdiff_t>(mask.offsets[row + 1]);
    if (begin <= end) cut.values.insert(cut.values.end(), begin, end);
    cut.offsets.push_back(cut.values.size());
  }
  mask = std::move(cut);
}

void require_mask_value(const Rows& mask, std::size_t row, double value) {
  if (value == 0 || value == 1) return;
  throw UsageError(fmt::format("{}: row {} holds {}; a mask holds 0 and 1", mask.name, row, value));
}

std::vector<std::uint8_t> mask_of(const std::vector<std::size_t>& offsets, const std::string& name,
                                  Rows mask) {
  drop_first_column(offsets, mask);
  require_alike(offsets, name, mask);
  std::vector<std::uint8_t> result(mask.values.size());
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    for (std::size_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      require_mask_value(mask, row, mask.values[i]);
      result[i] = mask.values[i] == 1 ? 1 : 0;
    }
  }
  return result;
}

// One value a row: spread over the row's tokens.
void spread_over_rows(const std::vector<std::size_t>& offsets, Rows& mask) {
  const std::size_t rows = offsets.size() - 1;
  const bool column = mask.values.size() == rows && offsets.back() != rows;
  if (!column) return;
  Rows spread{mask.name, offsets, std::vector<double>(offsets.back())};
  for (std::size_t row = 0; row < rows; ++row) {
    std::fill(spread.values.begin() + static_cast<std::ptrdiff_t>(offsets[row]),
              spread.values.begin() + static_cast<std::ptrdiff_t>(offsets[row + 1]),
              mask.values[row]);
  }
  mask = std::move(spread);
}

// The arrays of one rank.
struct Sources {
  Picked old_values, new_values;
  std::optional<Picked> mask, second_mask, rollout, ref, entropy, new_repeat, token_ids;
  std::optional<Picked> micro_batch;
};

std::vector<double> optional_values(const LogProbShard& shard, const std::string& name,
                                    const std::optional<Picked>& from) {
  if (!from) return {};
  Rows rows = rows_of(*from);
  require_alike(shard.offsets, name, rows);
  return std::move(rows.values);
}

void take_masks(const Sources& sources, LogProbShard& shard) {
  if (!sources.mask) return;
  const std::string& name = sources.old_values.name;
  shard.mask = mask_of(shard.offsets, name, rows_of(*sources.mask));
  if (sources.second_mask) {
    Rows second = rows_of(*sources.second_mask);
    spread_over_rows(shard.offsets, second);
    const auto other = mask_of(shard.offsets, name, std::move(second));
    for (std::size_t i = 0; i < other.size(); ++i) shard.mask[i] &= other[i];
  }
  if (std::find(shard.mask.begin(), shard.mask.end(), 1) == shard.mask.end()) {
    throw UsageError(sources.mask->name + ": the mask selects no token");
  }
}

void require_real(const Picked& from) {
  if (is_measured(from.array->dtype)) return;
  throw UsageError(fmt::format("{}: log-probs of type {}; f64, f32, f16 or bf16 are wanted",
                               from.name, name_of(from.array->dtype)));
}

// One number a row, or the same for all of its tokens.
std::vector<std::int64_t> micro_batches_of(const LogProbShard& shard, const Picked& from) {
  Rows numbers = rows_of(from);
  spread_over_rows(shard.offsets, numbers);
  require_alike(shard.offsets, shard.file, numbers);
  std::vector<std::int64_t> batches(shard.offsets.size() - 1);
  for (std::size_t row = 0; row < batches.size(); ++row) {
    for (std::size_t i = shard.offsets[row]; i < shard.offsets[row + 1]; ++i) {
      const double number = numbers.values[i];
      const bool whole = std::abs(number) <= kMaxTokenId && std::trunc(number) == number;
      if (!whole || number != numbers.values[shard.offsets[row]]) {
        throw UsageError(
            fmt::format("{}: row {} names no micro-batch of its own ({})", from.name, row, number));
      }
      batches[row] = static_cast<std::int64_t>(number);
    }
  }
  return batches;
}

LogProbShard shard_of(const Sources& sources, int rank) {
  require_real(sources.old_values);
  require_real(sources.new_values);
  LogProbShard shard;
  shard.rank = rank;
  shard.file = sources.new_values.file->path;
  shard.old_dtype = sources.old_values.array->dtype;
  shard.new_dtype = sources.new_values.array->dtype;
  Rows old_rows = rows_of(sources.old_values);
  Rows new_rows = rows_of(sources.new_values);
  require_alike(old_rows.offsets, old_rows.name, new_rows);
  shard.offsets = std::move(old_rows.offsets);
  shard.old_values = std::move(old_rows.values);
  shard.new_values = std::move(new_rows.values);
  shard.aliased = sources.old_values.array == sources.new_values.array;
  take_masks(sources, shard);
  const std::string& name = sources.old_values.name;
  shard.rollout = optional_values(shard, name, sources.rollout);
  shard.ref = optional_values(shard, name, sources.ref);
  shard.entropy = optional_values(shard, name, sources.entropy);
  shard.new_repeat = optional_values(shard, name, sources.new_repeat);
  for (const double id : optional_values(shard, name, sources.token_ids)) {
    if (!(std::abs(id) <= kMaxTokenId) || std::trunc(id) != id) {
      throw UsageError(fmt::format("{}: {} is no token id", sources.token_ids->name, id));
    }
    shard.token_ids.push_back(static_cast<std::int64_t>(id));
  }
  if (sources.micro_batch) shard.micro_batches = micro_batches_of(shard, *sources.micro_batch);
  return shard;
}

std::optional<Picked> picked_if(const std::shared_ptr<const ArrayFile>& file,
                                std::string_view name) {
  const std::string key(name);
  const bool is_there = file->arrays.contains(key) || file->incomplete.contains(key);
  if (key.empty() || !is_there) return std::nullopt;
  return picked(file, key);
}

Sources sources_in(const std::shared_ptr<const ArrayFile>& file) {
  const LogProbNames& names = names_in(*file);
  Sources sources{picked(file, std::string(names.old_values)),
                  picked(file, std::string(names.new_values)),
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  {}};
  sources.mask = picked_if(file, names.mask);
  sources.second_mask = picked_if(file, names.second_mask);
  sources.rollout = picked_if(file, "rollout");
  sources.ref = picked_if(file, "ref");
  sources.entropy = picked_if(file, "entropy");
  sources.new_repeat = picked_if(file, "new_repeat");
  sources.token_ids = picked_if(file, "token_ids");
  sources.micro_batch = picked_if(file, "micro_batch");
  return sources;
}

std::optional<Picked> role(Files& files, const std::vector<std::string>& paths, std::size_t rank) {
  if (paths.empty()) return std::nullopt;
  return picked(files, paths[rank]);
}

void require_count(const std::vector<std::string>& paths, std::size_t ranks, const char* option) {
  if (paths.empty() || paths.size() == ranks) return;
  throw UsageError(fmt::format("--{} is given {} times, --old {}", option, paths.size(), ranks));
}

void require_counts(const LogProbFiles& files) {
  const std::size_t ranks = files.old_values.size();
  if (ranks == 0 || files.new_values.empty()) {
    throw UsageError("give --old and --new, or files that hold both");
  }
  require_count(files.new_values, ranks, "new");
  require_count(files.mask, ranks, "mask");
  require_count(files.rollout, ranks, "rollout");
  require_count(files.ref, ranks, "ref");
  require_count(files.entropy, ranks, "entropy");
  require_count(files.new_repeat, ranks, "new-repeat");
  require_count(files.token_ids, ranks, "token-ids");
}

std::vector<LogProbShard> from_roles(const LogProbFiles& files) {
  require_counts(files);
  Files cache;
  std::vector<LogProbShard> shards;
  for (std::size_t rank = 0; rank < files.old_values.size(); ++rank) {
    Sources sources{picked(cache, files.old_values[rank]),
                    picked(cache, files.new_values[rank]),
                    {},
                    {},
                    {},
                    {},
                    {},
                    {},
                    {},
                    {}};
    sources.mask = role(cache, files.mask, rank);
    sources.rollout = role(cache, files.rollout, rank);
    sources.ref = role(cache, files.ref, rank);
    sources.entropy = role(cache, files.entropy, rank);
    sources.new_repeat = role(cache, files.new_repeat, rank);
    sources.token_ids = role(cache, files.token_ids, rank);
    shards.push_back(shard_of(sources, static_cast<int>(rank)));
  }
  return shards;
}

}  // namespace

std::vector<LogProbShard> read_log_probs(const LogProbFiles& files) {
  if (files.containers.empty()) return from_roles(files);
  if (!files.old_values.empty() || !files.new_values.empty()) {
    throw UsageError("give files that hold old and new, or --old and --new, not both");
  }
  std::vector<LogProbShard> shards;
  for (const std::string& path : files.containers) {
    Files cache;
    shards.push_back(shard_of(sources_in(opened(cache, path)), static_cast<int>(shards.size())));
  }
  return shards;
}

}  // namespace gradcheck
