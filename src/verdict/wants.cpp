// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "verdict/agreement.h"
#include "verdict/facts.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

// A gradient of the step, and how much its elements are wanted.
struct Candidate {
  std::string name;
  double distance = 0;  // largest between ranks, from sketches; 0 for equal ones
  bool differs = false;
  std::uint64_t bytes = 0;  // on the rank that holds most
};

// Without sketches the norm stands in: a tensor that exists on one rank only is far away.
double worst_distance(const EvidenceTable& table, std::span<const Entry> entries) {
  double worst = 0;
  for (std::size_t rank = 1; rank < entries.size(); ++rank) {
    const auto distance = sketch_distance(table, entries[0], entries[rank]);
    worst = std::max(worst, distance.value_or(std::max(entries[0].l2, entries[rank].l2)));
  }
  return worst;
}

std::uint64_t whole_bytes(const EvidenceTable& table, const Entry& shard) {
  std::uint64_t bytes = size_of(shard.dtype);
  for (const std::int64_t extent : table.shape(static_cast<std::uint32_t>(shard.whole))) {
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

Candidate candidate_of(const EvidenceTable& table, const RowKey& key) {
  const auto entries = table.entries(key);
  Candidate candidate;
  candidate.name = payload_name(table, {key.model, key.name});
  candidate.differs = !compare_ranks(entries, every_rank(table.world_size())).equal();
  if (candidate.differs) candidate.distance = worst_distance(table, entries);
  // The parts of a sharded one are no copies, and the locals beside them are whole.
  const auto shard = std::find_if(entries.begin(), entries.end(), is_shard);
  if (shard != entries.end()) {
    candidate.differs = false;
    candidate.bytes = whole_bytes(table, *shard);
  }
  for (const Entry& entry : entries) {
    candidate.bytes = std::max<std::uint64_t>(candidate.bytes, entry.n * size_of(entry.dtype));
  }
  return candidate;
}

// Rows of one step; the others are not looked at, because a job asks again and again.
using Rows = std::vector<RowKey>;

std::vector<Candidate> candidates(const EvidenceTable& table, const Rows& rows,
                                  std::int64_t micro) {
  std::vector<Candidate> result;
  for (const RowKey& key : rows) {
    if (key.micro == micro && key.stage == Stage::reduced) {
      result.push_back(candidate_of(table, key));
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const Candidate& a, const Candidate& b) {
    if (a.differs != b.differs) return a.differs;
    return a.distance > b.distance;
  });
  return result;
}

std::set<std::int64_t> micros_of(const Rows& rows, Stage stage) {
  std::set<std::int64_t> micros;
  for (const RowKey& key : rows) {
    if (key.stage == stage) micros.insert(key.micro);
  }
  return micros;
}

// Names are filled in, in the order of the candidates, as far as the budget reaches.
std::vector<Want> filled(std::vector<Want> wants, const std::vector<Candidate>& candidates,
                         std::uint64_t budget_bytes) {
  std::uint64_t left = budget_bytes / wants.size();
  // One that does not fit leaves room for smaller ones after it.
  for (const Candidate& candidate : candidates) {
    if (candidate.bytes > left) continue;
    left -= candidate.bytes;
    for (Want& want : wants) {
      want.names.push_back(candidate.name);
      want.budget_bytes += candidate.bytes;
    }
  }
  const bool empty = wants.front().names.empty();
  return empty ? std::vector<Want>{} : wants;
}

std::vector<Want> moments_wanted(const Rows& rows, std::int64_t step, bool locals) {
  const auto reduced = micros_of(rows, Stage::reduced);
  if (reduced.empty()) return {};
  std::vector<Want> wants;
  if (locals) {
    for (const std::int64_t micro : micros_of(rows, Stage::local)) {
      wants.push_back({step, micro, Stage::local, {}, 0});
    }
  }
  wants.push_back({step, *reduced.rbegin(), Stage::reduced, {}, 0});
  return wants;
}

}  // namespace

std::vector<Want> wanted_payloads(const EvidenceTable& table, std::int64_t step,
                                  std::uint64_t budget_bytes) {
  const Rows rows = table.rows_of(step);
  std::vector<Want> wants = moments_wanted(rows, step, true);
  if (wants.empty()) return {};
  const auto names = candidates(table, rows, wants.back().micro);
  return filled(std::move(wants), names, budget_bytes);
}

std::vector<Want> wanted_payloads_of_model(const EvidenceTable& table, std::string_view model,
                                           std::int64_t step, std::uint64_t budget_bytes,
                                           bool exact) {
  const auto id = table.find_text(model);
  if (!id) return {};
  Rows rows = table.rows_of(step);
  std::erase_if(rows, [id](const RowKey& key) { return key.model != *id; });
  std::vector<Want> wants = moments_wanted(rows, step, exact);
  if (wants.empty()) return {};
  auto names = candidates(table, rows, wants.back().micro);
  std::erase_if(names, [](const Candidate& candidate) { return !candidate.differs; });
  return filled(std::move(wants), names, budget_bytes);
}

}  // namespace gradcheck
