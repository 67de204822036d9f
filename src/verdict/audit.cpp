// SPDX-License-Identifier: Apache-2.0
#include "verdict/audit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "numeric/distance.h"

namespace gradcheck {
namespace {

constexpr std::size_t kChunk = 4096;                   // elements
constexpr double kDoubleRoundoff = 0x1p-53;            // of our own arithmetic
constexpr double kSketchSlack = 3;                     // verdicts.md §5
constexpr double kBucketShare = 1.0 / kSketchBuckets;  // elements of a bucket, as a share of n

// Weight 0 leaves a rank out, as an absent gradient does.
bool contributes(const Part& part) {
  return part.weight != 0 && part.entry->state != TensorState::absent;
}

// A tensor of zeros needs no elements to be known.
bool elements_known(const Part& part) {
  const TensorState state = part.entry->state;
  if (state == TensorState::absent || state == TensorState::zero) return true;
  return part.view != nullptr && is_measured(part.view->dtype) &&
         part.view->bytes.size() == part.entry->n * size_of(part.view->dtype);
}

bool all_elements_known(const AuditQuestion& question) {
  return elements_known(question.value) &&
         std::all_of(question.parts.begin(), question.parts.end(),
                     [](const Part& part) { return !contributes(part) || elements_known(part); });
}

std::uint64_t element_count(const AuditQuestion& question) {
  std::uint64_t n = question.value.entry->n;
  for (const Part& part : question.parts) {
    if (contributes(part)) n = std::max(n, part.entry->n);
  }
  return n;
}

// Parts of other sizes than the value cannot be summed into it.
bool sizes_match(const AuditQuestion& question, std::uint64_t n) {
  const auto fits = [n](const Part& part) {
    return part.entry->state == TensorState::absent || part.entry->n == n;
  };
  return fits(question.value) && std::all_of(question.parts.begin(), question.parts.end(), fits);
}

// Absent and zero tensors read as zeros, which is what they contribute.
void load(const Part& part, std::size_t first, std::span<double> out) {
  const bool has_elements =
      part.view != nullptr && elements_known(part) && part.entry->state != TensorState::absent;
  if (has_elements) {
    to_double(part.view->dtype, part.view->bytes, first, out);
  } else {
    std::fill(out.begin(), out.end(), 0.0);
  }
}

// Every addition of every reduction may lose up to one subnormal to underflow.
double floor_of(const AuditQuestion& question) {
  return question.reductions * question.ranks * question.subnormal;
}

// What the declared reduction of one chunk is, and on what scale its rounding lives.
struct Expected {
  std::array<double, kChunk> sum;
  std::array<double, kChunk> scale;
  std::array<bool, kChunk> poisoned;  // some part is not finite here

  void clear() {
    sum.fill(0);
    scale.fill(0);
    poisoned.fill(false);
  }
  void add(double weight, std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        poisoned[i] = true;
        continue;
      }
      sum[i] += weight * values[i];
      scale[i] += std::abs(weight * values[i]);
    }
  }
};

struct Bound {
  double factor = 0;  // times the scale
  double floor = 0;
};

// 0 for an exact value, infinite for an error where none is allowed; NaN stays NaN.
double share_of(double error, double bound) { return error == 0 ? 0 : error / bound; }

void judge_element(Audit& result, double value, const Expected& expected, std::size_t i,
                   const Bound& bound) {
  if (expected.poisoned[i] || !std::isfinite(value)) {
    if (!expected.poisoned[i]) ++result.made;
    if (expected.poisoned[i]) ++(std::isfinite(value) ? result.lost : result.left_out);
    return;
  }
  const double error = std::abs(value - expected.sum[i]);
  const double used = share_of(error, bound.factor * expected.scale[i] + bound.floor);
  if (!(used <= *result.bound_used)) result.bound_used = used;
}

void judge_elements(Audit& result, const AuditQuestion& question, double gamma) {
  const std::size_t begin = question.only ? question.only->first : 0;
  const std::size_t end = question.only ? begin + question.only->count : element_count(question);
  // Our own sum in double rounds once a part: it matters for float64 only.
  const auto terms = static_cast<double>(question.parts.size() + 1);
  const Bound bound{gamma + terms * kDoubleRoundoff, floor_of(question)};
  Expected expected;
  std::array<double, kChunk> buffer;
  for (std::size_t first = begin; first < end; first += kChunk) {
    const std::span<double> chunk(buffer.data(), std::min(kChunk, end - first));
    expected.clear();
    for (const Part& part : question.parts) {
      if (!contributes(part)) continue;
      load(part, first, chunk);
      expected.add(part.weight, chunk);
    }
    load(question.value, first, chunk);
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      judge_element(result, chunk[i], expected, i, bound);
    }
  }
}

// NaN in bound_used would compare false here: a pass needs a number.
Audit elementwise_audit(const AuditQuestion& question, double gamma) {
  Audit result;
  result.how = "elementwise";
  result.bound_used = 0;
  judge_elements(result, question, gamma);
  result.visible = gamma * question.ranks;
  const bool finite = result.made == 0 && result.lost == 0;
  const bool right = *result.bound_used <= 1;
  result.result = right && finite ? RungResult::pass : RungResult::fail;
  return result;
}

// Sketches cover finite elements only: with others about, they describe another tensor.
bool sketch_known(const Part& part) {
  const TensorState state = part.entry->state;
  if (state == TensorState::absent || state == TensorState::zero) return true;
  return part.sketch != nullptr && state == TensorState::finite;
}

bool all_sketches_known(const AuditQuestion& question) {
  return sketch_known(question.value) &&
         std::all_of(question.parts.begin(), question.parts.end(), sketch_known);
}

void subtract(Sketch& from, const Part& part, double weight) {
  if (part.sketch == nullptr) return;
  for (std::size_t k = 0; k < from.size(); ++k) from[k] -= weight * (*part.sketch)[k];
}

double norm(const Sketch& sketch) {
  double sum = 0;
  for (const double x : sketch) sum += x * x;
  return std::sqrt(sum);
}

// verdicts.md §5, "From sketches": norms instead of elements, three times as wide, plus what the
// sketches' own sums in double may have lost.
Audit sketch_audit(const AuditQuestion& question, double gamma) {
  Sketch gap{};
  subtract(gap, question.value, -1);
  double scale = 0;
  for (const Part& part : question.parts) {
    if (!contributes(part)) continue;
    subtract(gap, part, part.weight);
    scale += std::abs(part.weight) * part.entry->l2;
  }
  const auto n = static_cast<double>(element_count(question));
  const double rounding = kSketchSlack * (gamma * scale + floor_of(question) * std::sqrt(n));
  const double own =
      2 * kDoubleRoundoff * std::sqrt(n * kBucketShare) * (question.value.entry->l2 + scale);
  Audit result;
  result.how = "sketch";
  result.bound_used = share_of(norm(gap), rounding + own);
  result.visible = kSketchSlack * gamma * question.ranks;
  result.result = *result.bound_used <= 1 ? RungResult::pass : RungResult::fail;
  return result;
}

Audit inconclusive(std::string reason) {
  Audit result;
  result.reason = std::move(reason);
  return result;
}

}  // namespace

std::optional<double> rounding_factor(const AuditQuestion& question) {
  const int roundings = question.reductions * (question.ranks + 1) + question.micro_steps;
  const double share = roundings * question.roundoff;
  if (!(share < 0.5)) return std::nullopt;
  return share / (1 - share);
}

Audit audit(const AuditQuestion& question) {
  if (!sizes_match(question, element_count(question))) {
    return inconclusive("local and reduced gradients have different sizes");
  }
  const auto gamma = rounding_factor(question);
  if (!gamma) {
    Audit skipped = inconclusive("the rounding bound says nothing for so many ranks in this type");
    skipped.bound_skipped = true;
    return skipped;
  }
  if (all_elements_known(question)) return elementwise_audit(question, *gamma);
  if (!question.only && all_sketches_known(question)) return sketch_audit(question, *gamma);
  return inconclusive("neither elements nor finite sketches are at hand");
}

}  // namespace gradcheck
