// SPDX-License-Identifier: Apache-2.0
#include "verdict/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "numeric/distance.h"
#include "verdict/facts.h"

namespace gradcheck {
namespace {

bool is_absent(const Entry& entry) { return entry.state == TensorState::absent; }

// Digests are comparable only where dtype and shape are equal.
bool agree(const Entry& a, const Entry& b) {
  if (is_absent(a) || is_absent(b)) return is_absent(a) && is_absent(b);
  return a.dtype == b.dtype && a.shape == b.shape && a.digest == b.digest;
}

// Linear in the number of clusters: healthy rows have one.
void file_under(Agreement& agreement, std::span<const Entry> entries, int rank) {
  const Entry& entry = entries[static_cast<std::size_t>(rank)];
  for (auto& cluster : agreement.clusters) {
    const Entry& first = entries[static_cast<std::size_t>(cluster.front())];
    if (!agree(first, entry)) continue;
    cluster.push_back(rank);
    return;
  }
  agreement.clusters.push_back({rank});
}

constexpr std::size_t kChunk = 4096;  // elements: a few ranks' worth of doubles stays in cache

// Running largest and smallest finite value of each element of a chunk over ranks.
struct Envelope {
  std::array<double, kChunk> low;
  std::array<double, kChunk> high;

  void clear() {
    low.fill(std::numeric_limits<double>::infinity());
    high.fill(-std::numeric_limits<double>::infinity());
  }
  void add(std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      low[i] = std::min(low[i], values[i]);
      high[i] = std::max(high[i], values[i]);
    }
  }
  double widest(std::size_t size) const {
    double widest = 0;
    for (std::size_t i = 0; i < size; ++i) widest = std::max(widest, high[i] - low[i]);
    return widest;
  }
};

using Views = std::vector<const TensorView*>;

std::size_t element_count(const TensorView& view) {
  return view.bytes.size() / size_of(view.dtype);
}

// One pass a chunk over all ranks, so that N ranks cost N reads and not N² comparisons.
double widest_gap(const Views& views) {
  double widest = 0;
  Envelope envelope;
  std::array<double, kChunk> buffer;
  const std::size_t n = element_count(*views.front());
  for (std::size_t first = 0; first < n; first += kChunk) {
    const std::span<double> chunk(buffer.data(), std::min(kChunk, n - first));
    envelope.clear();
    for (const TensorView* view : views) {
      to_double(view->dtype, view->bytes, first, chunk);
      envelope.add(chunk);
    }
    widest = std::max(widest, envelope.widest(chunk.size()));
  }
  return widest;
}

// Elements whose bits are not the same in all views.
std::uint64_t count_differing(const Views& views) {
  const std::size_t size = size_of(views.front()->dtype);
  const std::byte* base = views.front()->bytes.data();
  std::uint64_t differing = 0;
  for (std::size_t at = 0; at < views.front()->bytes.size(); at += size) {
    differing += std::any_of(views.begin(), views.end(), [&](const TensorView* view) {
      return std::memcmp(view->bytes.data() + at, base + at, size) != 0;
    });
  }
  return differing;
}

// Pairs with the first rank are enough to tell whether only signs of zero or NaN payloads differ.
Spread exact_spread(const Views& views) {
  Spread result;
  result.exact = true;
  result.max_abs = widest_gap(views);
  result.differing_elements = count_differing(views);
  Difference sum;
  for (std::size_t i = 1; i < views.size(); ++i) {
    const Difference pair = difference(views[0]->dtype, views[0]->bytes, views[i]->bytes);
    sum.differing += pair.differing;
    sum.sign_of_zero += pair.sign_of_zero;
    sum.nan_payload += pair.nan_payload;
    sum.nonfinite += pair.nonfinite;
  }
  // A number against NaN or infinity has no distance.
  if (sum.nonfinite > sum.nan_payload) result.max_abs.reset();
  result.sign_of_zero_only = sum.differing > 0 && sum.differing == sum.sign_of_zero;
  result.nan_payload_only = sum.differing > 0 && sum.differing == sum.nan_payload;
  return result;
}

// For n elements with independent normal differences of norm d the largest is near
// d/√n · √(2 ln n); it never exceeds d.
double largest_of(double distance, std::uint64_t n) {
  const double count = std::max<double>(1, static_cast<double>(n));
  return distance * std::min(1.0, std::sqrt(std::max(1.0, 2 * std::log(count)) / count));
}

// Nothing at all where some rank has no sketch: a part of the pairs would understate the distance.
Spread estimated_spread(const EvidenceTable& table, std::span<const Entry> entries,
                        std::span<const int> ranks) {
  Spread result;
  for (const int a : ranks) {
    for (const int b : ranks) {
      if (b <= a) continue;
      const Entry& entry = entries[static_cast<std::size_t>(a)];
      const auto distance = sketch_distance(table, entry, entries[static_cast<std::size_t>(b)]);
      if (!distance) return {};
      result.max_abs = std::max(result.max_abs.value_or(0), largest_of(*distance, entry.n));
    }
  }
  return result;
}

}  // namespace

Agreement compare_ranks(std::span<const Entry> entries, std::span<const int> group) {
  Agreement agreement;
  const Entry* first = nullptr;
  for (const int rank : group) {
    const bool known = static_cast<std::size_t>(rank) < entries.size();
    const Entry entry = known ? entries[static_cast<std::size_t>(rank)] : Entry{};
    if (!entry.recorded || entry.state == TensorState::unreadable) {
      agreement.unrecorded.push_back(rank);
      continue;
    }
    file_under(agreement, entries, rank);
    (is_absent(entry) ? agreement.absent : agreement.present).push_back(rank);
    if (is_absent(entry)) continue;
    if (first == nullptr) first = &entries[static_cast<std::size_t>(rank)];
    agreement.shapes_equal &= entry.dtype == first->dtype && entry.shape == first->shape;
  }
  return agreement;
}

std::string cluster_text(const Agreement& agreement) {
  std::string text;
  for (const auto& cluster : agreement.clusters) {
    text += fmt::format("{{{}}}", fmt::join(cluster, ","));
  }
  return text;
}

std::vector<int> minority(const Agreement& agreement) {
  const std::vector<int>* largest = nullptr;
  bool alone = false;
  for (const auto& cluster : agreement.clusters) {
    if (largest != nullptr && cluster.size() < largest->size()) continue;
    alone = largest == nullptr || cluster.size() > largest->size();
    largest = &cluster;
  }
  std::vector<int> ranks;
  for (const auto& cluster : agreement.clusters) {
    if (!alone || &cluster != largest) ranks.insert(ranks.end(), cluster.begin(), cluster.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::optional<double> sketch_distance(const EvidenceTable& table, const Entry& a, const Entry& b) {
  const Sketch* left = table.sketch(a);
  const Sketch* right = table.sketch(b);
  if (left == nullptr || right == nullptr) return std::nullopt;
  double sum = 0;
  for (std::size_t k = 0; k < left->size(); ++k) {
    const double gap = (*left)[k] - (*right)[k];
    sum += gap * gap;
  }
  return std::sqrt(sum);
}

const TensorView* find_view(const EvidenceTable& table, const PayloadViews& payloads,
                            const RowKey& key, int rank) {
  const auto found = payloads.find(
      {key.step, key.micro, key.stage, rank, payload_name(table, {key.model, key.name})});
  return found == payloads.end() ? nullptr : &found->second;
}

Spread spread(const EvidenceTable& table, const PayloadViews& payloads, const RowKey& key,
              const Agreement& agreement) {
  const auto entries = table.entries(key);
  Views views;
  std::vector<int> leaders;  // one present rank a cluster: the others have the same bits
  for (const auto& cluster : agreement.clusters) {
    if (is_absent(entries[static_cast<std::size_t>(cluster.front())])) continue;
    leaders.push_back(cluster.front());
    const TensorView* view = find_view(table, payloads, key, cluster.front());
    if (view != nullptr && is_measured(view->dtype)) views.push_back(view);
  }
  if (leaders.size() < 2 || !agreement.shapes_equal) return {};
  const bool all_at_hand =
      views.size() == leaders.size() &&
      std::all_of(views.begin(), views.end(), [&](const TensorView* view) {
        return view->dtype == views[0]->dtype && view->bytes.size() == views[0]->bytes.size();
      });
  return all_at_hand ? exact_spread(views) : estimated_spread(table, entries, leaders);
}

}  // namespace gradcheck
