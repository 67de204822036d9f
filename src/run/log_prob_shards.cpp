// SPDX-License-Identifier: Apache-2.0
#include "run/log_prob_shards.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "evidence/read/safetensors.h"
#include "model/errors.h"
#include "numeric/array_digest.h"
#include "numeric/distance.h"
#include "numeric/kernel.h"
#include "run/payloads.h"

namespace gradcheck {
namespace {

using Arrays = std::map<std::string, TensorView>;

[[noreturn]] void refuse(const std::string& why) { throw InfrastructureError(why); }

Digest digest_of_all(const Arrays& arrays) {
  std::vector<ArrayStamp> stamps;
  for (const auto& [key, view] : arrays) {
    const Digest digest = measure(view.dtype, view.bytes, KernelMode::digest_only).digest;
    stamps.push_back({key, view.dtype, view.shape, digest});
  }
  return digest_of(stamps);
}

void require_what_was_recorded(const LogProbRecord& record, const Arrays& arrays) {
  const std::set<std::string> keys(record.keys.begin(), record.keys.end());
  std::uint64_t bytes = 0;
  for (const auto& [key, view] : arrays) {
    if (!keys.contains(key)) refuse(key + " was not recorded");
    bytes += view.bytes.size();
  }
  const bool equal = keys.size() == arrays.size() && bytes == record.bytes &&
                     to_hex(digest_of_all(arrays)) == record.digest;
  if (!equal) refuse(record.file + " does not hold the arrays that were recorded");
}

// Null where it is missing. All arrays are of one shape, [rows, tokens].
const TensorView* find(const Arrays& arrays, const std::string& key,
                       const std::vector<std::int64_t>& shape) {
  const auto found = arrays.find(key);
  if (found == arrays.end()) return nullptr;
  if (found->second.shape != shape) refuse(key + " has another shape than new");
  return &found->second;
}

std::vector<double> values_of(const TensorView* view, std::string_view key) {
  if (view == nullptr) return {};
  if (!is_measured(view->dtype)) refuse(std::string(key) + " holds no floating-point numbers");
  std::vector<double> values(view->bytes.size() / size_of(view->dtype));
  to_double(view->dtype, view->bytes, 0, values);
  return values;
}

template <typename T>
std::vector<T> whole_numbers(const TensorView* view, DType dtype, std::string_view key) {
  if (view == nullptr) return {};
  if (view->dtype != dtype) refuse(std::string(key) + " is of another type than it should be");
  std::vector<T> values(view->bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), view->bytes.data(), view->bytes.size());
  return values;
}

std::vector<std::size_t> offsets_of(const std::vector<std::int64_t>& shape) {
  if (shape.size() != 2) refuse("new is not of shape [rows, tokens]");
  std::vector<std::size_t> offsets{0};
  // Rows of no tokens take no memory in the file, and must take none here.
  const auto rows = shape[1] == 0 ? 0 : static_cast<std::size_t>(shape[0]);
  for (std::size_t row = 0; row < rows; ++row) {
    offsets.push_back(offsets.back() + static_cast<std::size_t>(shape[1]));
  }
  return offsets;
}

LogProbShard shard_of(int rank, const LogProbRecord& record, const Arrays& arrays) {
  const auto found = arrays.find("new");
  if (found == arrays.end()) refuse("new is missing");
  const TensorView& fresh = found->second;
  const auto array = [&](const char* key) { return find(arrays, key, fresh.shape); };
  const TensorView* old = record.aliased ? &fresh : array("old");
  if (old == nullptr) refuse("old is missing");
  LogProbShard shard;
  shard.rank = rank;
  shard.file = record.file;
  shard.offsets = offsets_of(fresh.shape);
  shard.new_dtype = fresh.dtype;
  shard.old_dtype = old->dtype;
  shard.new_values = values_of(&fresh, "new");
  shard.old_values = values_of(old, "old");
  shard.mask = whole_numbers<std::uint8_t>(array("mask"), DType::u8, "mask");
  for (std::uint8_t& counts : shard.mask) counts = counts != 0;
  shard.rollout = values_of(array("rollout"), "rollout");
  shard.ref = values_of(array("ref"), "ref");
  shard.entropy = values_of(array("entropy"), "entropy");
  shard.new_repeat = values_of(array("new_repeat"), "new_repeat");
  shard.token_ids = whole_numbers<std::int64_t>(array("token_ids"), DType::i64, "token_ids");
  shard.aliased = record.aliased;
  shard.updates = record.updates;
  return shard;
}

LogProbShard read_one(const std::string& directory, int rank, const LogProbRecord& record) {
  if (!stays_inside(record.file)) refuse("file lies outside the run");
  const SafetensorsFile file(directory + "/" + record.file);
  require_what_was_recorded(record, file.tensors());
  return shard_of(rank, record, file.tensors());
}

using SetKey = std::pair<std::int64_t, std::string>;

void add(const std::string& directory, int rank, const LogProbRecord& record, EvidenceTable& table,
         std::set<std::string>& files, std::map<SetKey, LogProbSet>& sets) {
  LogProbSet& set = sets[{record.step, record.name}];
  if (set.source.empty()) set.source = record.source;
  if (record.file.empty()) {
    set.unwritten.emplace_back(rank, record.text);
    return;
  }
  try {
    if (!files.insert(record.file).second) refuse(record.file + " was named before");
    set.shards.push_back(read_one(directory, rank, record));
  } catch (const InfrastructureError& error) {
    table.refuse("rank " + std::to_string(rank) + ", log-probs: " + error.what());
  }
}

std::vector<int> missing_ranks(const EvidenceTable& table, const SetKey& key) {
  std::vector<int> missing;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    const auto& records = table.rank(rank).log_probs;
    const bool has = std::any_of(records.begin(), records.end(), [&](const LogProbRecord& record) {
      return record.step == key.first && record.name == key.second;
    });
    if (!has) missing.push_back(rank);
  }
  return missing;
}

}  // namespace

std::vector<LogProbSet> read_log_probs(const std::string& directory, EvidenceTable& table) {
  std::map<SetKey, LogProbSet> sets;
  std::set<std::string> files;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const LogProbRecord& record : table.rank(rank).log_probs) {
      add(directory, rank, record, table, files, sets);
    }
  }
  std::vector<LogProbSet> list;
  for (auto& [key, set] : sets) {
    set.step = key.first;
    set.name = key.second;
    set.missing = missing_ranks(table, key);
    list.push_back(std::move(set));
  }
  return list;
}

}  // namespace gradcheck
