// SPDX-License-Identifier: Apache-2.0
#include "run/payloads.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "model/errors.h"
#include "numeric/kernel.h"
#include "run/log_prob_shards.h"

namespace gradcheck {
namespace {

// Keys are "model/name"; names may hold further slashes.
std::optional<RowKey> row_of(const EvidenceTable& table, const PayloadRecord& payload,
                             std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto model = table.find_text(key.substr(0, slash));
  const auto name = table.find_text(key.substr(slash + 1));
  if (!model || !name) return std::nullopt;
  return RowKey{payload.step, payload.micro, payload.stage, TensorKind::grad, *model, *name};
}

// Elements of another run or step would be audited in good faith.
bool is_what_was_recorded(const EvidenceTable& table, int rank, const PayloadRecord& payload,
                          std::string_view key, const TensorView& view) {
  const std::optional<RowKey> row = row_of(table, payload, key);
  const auto entries = row ? table.entries(*row) : std::span<const Entry>();
  if (entries.empty()) return false;
  const Entry& entry = entries[static_cast<std::size_t>(rank)];
  return entry.recorded && entry.dtype == view.dtype && table.shape(entry.shape) == view.shape &&
         entry.digest == measure(view.dtype, view.bytes, KernelMode::digest_only).digest;
}

void open_one(const std::string& directory, const EvidenceTable& table, int rank,
              const PayloadRecord& payload, Payloads& payloads) {
  if (!stays_inside(payload.file)) throw InfrastructureError("file lies outside the run");
  SafetensorsFile file(directory + "/" + payload.file);
  for (const auto& [key, view] : file.tensors()) {
    if (!is_what_was_recorded(table, rank, payload, key, view)) {
      throw InfrastructureError(key + " is not the tensor that was recorded");
    }
    payloads.views[{payload.step, payload.micro, payload.stage, rank, key}] = view;
  }
  payloads.files.push_back(std::move(file));
}

}  // namespace

bool stays_inside(const std::filesystem::path& file) {
  return file.is_relative() && std::find(file.begin(), file.end(), "..") == file.end();
}

Payloads open_payloads(const std::string& directory, EvidenceTable& table) {
  Payloads payloads;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const PayloadRecord& payload : table.rank(rank).payloads) {
      if (payload.file.empty()) continue;  // the rank could not write it; sketches speak then
      try {
        open_one(directory, table, rank, payload, payloads);
      } catch (const InfrastructureError& error) {
        table.refuse("rank " + std::to_string(rank) + ", payload: " + error.what());
      }
    }
  }
  payloads.log_probs = read_log_probs(directory, table);
  return payloads;
}

}  // namespace gradcheck
