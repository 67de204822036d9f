// SPDX-License-Identifier: Apache-2.0
#include "verdict/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "numeric/kernel.h"
#include "verdict/agreement.h"
#include "verdict/plan.h"

namespace gradcheck {
namespace {

struct Shard {
  int rank = 0;
  const Entry* entry = nullptr;
};

std::uint64_t elements_in(const std::vector<std::int64_t>& shape) {
  return std::accumulate(
      shape.begin(), shape.end(), std::uint64_t{1},
      [](std::uint64_t n, std::int64_t extent) { return n * static_cast<std::uint64_t>(extent); });
}

// The ranks that a row must come from: those of its model's wrapper, otherwise all.
std::vector<int> owners_of(const EvidenceTable& table, const RowKey& key) {
  const WrapperRecord* wrapper = wrapper_of(table, table.text(key.model));
  return wrapper == nullptr ? every_rank(table.world_size())
                            : ranks_of_group(table, wrapper->group);
}

// One row's shards, by offset.
class Assembly {
 public:
  Assembly(const EvidenceTable& table, const RowKey& key)
      : table_(table), key_(key), entries_(table.entries(key)) {
    for (int rank = 0; rank < table.world_size(); ++rank) {
      const Entry& entry = entries_[static_cast<std::size_t>(rank)];
      if (entry.recorded && entry.state != TensorState::absent) shards_.push_back({rank, &entry});
    }
    // Empty ones lie before the one that begins where they do.
    std::stable_sort(shards_.begin(), shards_.end(), [](const Shard& a, const Shard& b) {
      return std::pair(a.entry->offset, a.entry->n) < std::pair(b.entry->offset, b.entry->n);
    });
  }

  const std::vector<Shard>& shards() const { return shards_; }

  bool any_shard() const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const Entry& e) { return is_shard(e); });
  }

  // Some rank said nothing, or has no gradient: that is told where ranks are compared.
  bool lacks_ranks() const {
    const auto owners = owners_of(table_, key_);
    return std::any_of(owners.begin(), owners.end(), [this](int rank) {
      const Entry& entry = entries_[static_cast<std::size_t>(rank)];
      return !entry.recorded || entry.state == TensorState::absent ||
             entry.state == TensorState::unreadable;
    });
  }

  // Empty: the shards are a whole tensor.
  std::string problem() const {
    const Entry& first = *shards_.front().entry;
    std::uint64_t covered = 0;
    for (const auto& [rank, entry] : shards_) {
      if (!is_shard(*entry)) return fmt::format("rank {} holds a whole tensor, not a shard", rank);
      if (entry->whole != first.whole || entry->dtype != first.dtype) {
        return fmt::format("ranks {} and {} hold shards of tensors unlike in shape or dtype",
                           shards_.front().rank, rank);
      }
      if (entry->n > 0 && entry->offset < covered) {
        return fmt::format("element {} is in the shards of two ranks", entry->offset);
      }
      if (entry->offset > covered && entry->n > 0) {
        return fmt::format("element {} is in no rank's shard", covered);
      }
      covered = std::max(covered, entry->offset + entry->n);
    }
    const auto& shape = table_.shape(static_cast<std::uint32_t>(first.whole));
    return covered == elements_in(shape) ? ""
                                         : fmt::format("element {} is in no rank's shard", covered);
  }

  Entry whole() const {
    Entry sum = *shards_.front().entry;
    sum.digest = digest();
    sum.n = sum.nan = sum.inf = sum.zeros = 0;
    sum.l1 = sum.l2 = sum.max_abs = sum.min = sum.max = 0;
    sum.offset = 0;
    sum.shape = static_cast<std::uint32_t>(sum.whole);
    sum.measured = true;
    for (const Shard& shard : shards_) add(sum, *shard.entry);
    sum.l2 = std::sqrt(sum.l2);
    sum.state = state_of(sum);
    return sum;
  }

  // Nothing where a shard that is not zero has none.
  std::optional<Sketch> sketch() const {
    Sketch sum{};
    for (const Shard& shard : shards_) {
      const Sketch* sketch = table_.sketch(*shard.entry);
      if (sketch == nullptr && shard.entry->state != TensorState::zero) return std::nullopt;
      if (sketch == nullptr) continue;
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += (*sketch)[k];
    }
    return sum;
  }

  // Nothing where a shard's elements are not at hand.
  std::optional<std::vector<std::byte>> elements(const PayloadViews& payloads) const {
    std::vector<std::byte> bytes;
    for (const auto& [rank, entry] : shards_) {
      if (entry->n == 0) continue;
      const TensorView* view = find_view(table_, payloads, key_, rank);
      const bool fits = view != nullptr && view->dtype == entry->dtype &&
                        view->bytes.size() == entry->n * size_of(entry->dtype);
      if (!fits) return std::nullopt;
      bytes.insert(bytes.end(), view->bytes.begin(), view->bytes.end());
    }
    return bytes;
  }

 private:
  // l2 holds the sum of squares meanwhile.
  static void add(Entry& sum, const Entry& shard) {
    if (shard.n == 0) return;
    const bool first = sum.n == 0;
    sum.min = first ? shard.min : std::min(sum.min, shard.min);
    sum.max = first ? shard.max : std::max(sum.max, shard.max);
    sum.n += shard.n;
    sum.nan += shard.nan;
    sum.inf += shard.inf;
    sum.zeros += shard.zeros;
    sum.l1 += shard.l1;
    sum.l2 += shard.l2 * shard.l2;
    sum.max_abs = std::max(sum.max_abs, shard.max_abs);
    sum.measured &= shard.measured;
  }

  // Of what was only digested no more is known than that it is there.
  static TensorState state_of(const Entry& whole) {
    if (whole.nan + whole.inf > 0) return TensorState::nonfinite;
    return whole.measured && whole.zeros == whole.n ? TensorState::zero : TensorState::finite;
  }

  Digest digest() const {
    std::vector<std::uint64_t> words;
    for (const auto& [rank, entry] : shards_) {
      if (entry->n == 0) continue;
      words.insert(words.end(), {entry->offset, entry->n, entry->digest.high, entry->digest.low});
    }
    return measure(DType::i64, std::as_bytes(std::span(words)), KernelMode::digest_only).digest;
  }

  const EvidenceTable& table_;
  const RowKey& key_;
  std::span<const Entry> entries_;
  std::vector<Shard> shards_;
};

void refuse(PutTogether& to, const RowKey& key, const Assembly& assembly, std::string why) {
  to.problems.push_back({key, std::move(why)});
  for (const Shard& shard : assembly.shards()) {
    Entry nothing = *shard.entry;
    nothing.state = TensorState::unreadable;
    to.table.replace(key, shard.rank, nothing, nullptr);
  }
}

void make_whole(PutTogether& to, const RowKey& key, const Assembly& assembly,
                const PayloadViews& payloads) {
  const Entry whole = assembly.whole();
  const auto sketch = assembly.sketch();
  auto elements = assembly.elements(payloads);
  if (elements) to.storage.push_back(std::move(*elements));
  const std::string name = payload_name(to.table, {key.model, key.name});
  auto& ranges = to.ranges[key];
  ranges.resize(static_cast<std::size_t>(to.table.world_size()));
  for (const auto& [rank, entry] : assembly.shards()) {
    ranges[static_cast<std::size_t>(rank)] = {entry->offset, entry->n};
    Entry mine = whole;
    mine.requires_grad = entry->requires_grad;
    mine.tied_to = entry->tied_to;
    to.table.replace(key, rank, mine, sketch ? &*sketch : nullptr);
    const PayloadKey place{key.step, key.micro, key.stage, rank, name};
    to.payloads.erase(place);  // the shard's own: an entry of another size goes with it now
    if (!elements) continue;
    to.payloads[place] = {whole.dtype, to.table.shape(whole.shape), to.storage.back()};
  }
}

}  // namespace

std::optional<PutTogether> put_together(const EvidenceTable& table, const PayloadViews& payloads) {
  std::optional<PutTogether> to;
  for (const RowKey& key : table.rows()) {
    const Assembly assembly(table, key);
    if (!assembly.any_shard()) continue;
    if (!to) to = PutTogether{table, payloads, {}, {}, {}};
    if (assembly.lacks_ranks()) continue;
    std::string problem = assembly.problem();
    if (problem.empty()) {
      make_whole(*to, key, assembly, payloads);
    } else {
      refuse(*to, key, assembly, std::move(problem));
    }
  }
  return to;
}

}  // namespace gradcheck
