// SPDX-License-Identifier: Apache-2.0
#include "verdict/wrong_shards.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "numeric/distance.h"

namespace gradcheck {
namespace {

constexpr std::size_t kChunk = 4096;  // elements

struct Owners {
  std::vector<int> wrong;
  bool any_right = false;
};

// Empty where elements are not at hand.
Owners read_owners(const Context& context, const GradientResult& result) {
  Owners owners;
  const auto& right = result.right_ranks;
  for (const int rank : line_of(context, result).group) {
    const auto question =
        ask_of_shard(context, result, rank, declared_weights(context, result), result.reductions);
    if (!question) continue;
    const bool is_right = std::find(right.begin(), right.end(), rank) != right.end();
    owners.any_right |= is_right;
    if (!is_right) owners.wrong.push_back(rank);
  }
  return owners;
}

bool holds_own(const Context& context, const GradientResult& result, int rank) {
  const double declared = declared_weight(line_of(context, result));
  return passes(ask_of_shard(context, result, rank, own_weights(context, result, rank, 1), 0)) ||
         passes(
             ask_of_shard(context, result, rank, own_weights(context, result, rank, declared), 1));
}

// One part's elements of a chunk, zeros where it has none.
void load(const Part& part, std::size_t first, std::span<double> out) {
  if (part.view == nullptr) return std::fill(out.begin(), out.end(), 0.0);
  to_double(part.view->dtype, part.view->bytes, first, out);
}

// value = factor × declared value, by least squares over the part's elements.
std::optional<double> fitted_factor(const AuditQuestion& question) {
  double overlap = 0, square = 0;
  std::vector<double> expected(kChunk), buffer(kChunk);
  const std::size_t end = question.only->first + question.only->count;
  for (std::size_t first = question.only->first; first < end; first += kChunk) {
    const std::size_t size = std::min(kChunk, end - first);
    const std::span<double> chunk(buffer.data(), size);
    std::fill(expected.begin(), expected.end(), 0.0);
    for (const Part& part : question.parts) {
      load(part, first, chunk);
      for (std::size_t i = 0; i < size; ++i) expected[i] += part.weight * chunk[i];
    }
    load(question.value, first, chunk);
    for (std::size_t i = 0; i < size; ++i) {
      overlap += expected[i] * chunk[i];
      square += expected[i] * expected[i];
    }
  }
  if (!(square > 0)) return std::nullopt;
  return overlap / square;
}

// Each part by its own elements: one rank may have forgotten what the others did.
std::optional<double> factor_of(const Context& context, const GradientResult& result, int rank) {
  auto question =
      ask_of_shard(context, result, rank, declared_weights(context, result), result.reductions);
  if (!question || audit(*question).how != "elementwise") return std::nullopt;
  const auto factor = fitted_factor(*question);
  if (!factor) return std::nullopt;
  for (Part& part : question->parts) part.weight *= *factor;
  return audit(*question).result == RungResult::pass ? factor : std::nullopt;
}

std::optional<double> common_factor(const Context& context, const GradientResult& result,
                                    const std::vector<int>& ranks) {
  std::optional<double> common;
  for (const int rank : ranks) {
    const auto factor = factor_of(context, result, rank);
    if (!factor) return std::nullopt;
    if (common && !(std::abs(*factor - *common) <= 1e-3 * std::abs(*common))) return std::nullopt;
    common = factor;
  }
  return common;
}

}  // namespace

void diagnose_shards(const Context& context, GradientResult& result) {
  if (result.audit.how != "elementwise" || result.audit.made > 0 || result.audit.lost > 0) return;
  const Owners owners = read_owners(context, result);
  if (owners.wrong.empty()) return;
  Diagnosis& diagnosis = result.diagnosis;
  const bool own = std::all_of(owners.wrong.begin(), owners.wrong.end(),
                               [&](int rank) { return holds_own(context, result, rank); });
  if (own) {
    diagnosis.code = 201;
  } else if (!owners.any_right) {
    return;
  } else if (const auto factor = common_factor(context, result, owners.wrong)) {
    diagnosis.code = 204;
    diagnosis.factor = *factor;
  } else {
    diagnosis.code = 209;
  }
  if (owners.any_right) diagnosis.ranks = owners.wrong;
}

}  // namespace gradcheck
