// SPDX-License-Identifier: Apache-2.0
#include "verdict/unknown_reduction.h"

#include <algorithm>
#include <cmath>

namespace gradcheck {
namespace {

bool is_asked(const Context& context, const GradientResult& result) {
  const PlanLine& line = line_of(context, result);
  return result.used && result.compared && !result.differed && result.proved &&
         result.silent_ranks.empty() && result.agreement.shapes_equal &&
         (line.role == Role::undeclared || is_unknown(line)) && line.group.size() > 1;
}

// The rank that speaks for all: they agree, but not all tell more than a digest.
int speaker_of(const Context& context, const GradientResult& result) {
  const auto& group = line_of(context, result).group;
  const auto found = std::find_if(group.begin(), group.end(), [&](int rank) {
    const Entry* entry = find_entry(context.table(), result.reduced, rank);
    return entry != nullptr && entry->sketch >= 0;
  });
  return found == group.end() ? group.front() : *found;
}

bool holds(const Context& context, const GradientResult& result, const WeightTable& weights) {
  return passes(ask(context, result, speaker_of(context, result), weights, result.reductions));
}

bool fits_all(const Context& context, const GradientResult& result, double weight) {
  return holds(
      context, result,
      weights_of(result, std::vector<double>(line_of(context, result).group.size(), weight)));
}

class Reader {
 public:
  Reader(const Context& context, GradientResult& result)
      : context_(context),
        result_(result),
        mean_(1 / static_cast<double>(line_of(context, result).group.size())) {}

  void read() {
    result_.fits = fit();
    if (result_.fits != Fits::neither || try_crossing_window()) return;
    const bool clipped =
        is_clipped_by_rank(context_, result_, mean_) || is_clipped_by_rank(context_, result_, 1);
    if (clipped) return blame({205, 1, {}, {}});
    if (repeated(1) || repeated(mean_)) return;
  }

 private:
  Fits fit() const {
    return fits_all(context_, result_, mean_) ? Fits::mean
           : fits_all(context_, result_, 1)   ? Fits::sum
                                              : Fits::neither;
  }

  // A gradient that was not cleared holds the micro-steps of earlier steps too.
  bool try_crossing_window() {
    const auto window = context_.facts.windows.find({result_.step, result_.tensor});
    if (window == context_.facts.windows.end()) return false;
    if (window->second.whole.size() <= result_.window.size()) return false;
    const GradientResult before = result_;
    result_.window = window->second.whole;
    result_.reductions = reductions_in(context_.facts, result_.tensor.model, result_.window);
    result_.fits = fit();
    if (result_.fits == Fits::neither) {
      result_ = before;
      return false;
    }
    result_.carried_over = true;
    return true;
  }

  // Reduced after every micro-step, a sum multiplies what was reduced before by N again.
  bool repeated(double weight) {
    const auto ranks = line_of(context_, result_).group.size();
    const std::size_t micros = result_.window.size();
    if (micros < 2) return false;
    WeightTable weights = weights_of(result_, std::vector<double>(ranks, weight));
    Diagnosis diagnosis{211, 1, {}, {}};
    for (std::size_t m = 0; m < micros; ++m) {
      const auto times = static_cast<double>(micros - 1 - m);
      for (double& w : weights[m]) w *= std::pow(static_cast<double>(ranks), times);
      if (times > 0) diagnosis.micros.push_back(result_.window[m].micro);
    }
    if (!holds(context_, result_, weights)) return false;
    blame(std::move(diagnosis));
    return true;
  }

  void blame(Diagnosis diagnosis) {
    result_.diagnosis = std::move(diagnosis);
    result_.wrong = true;
    result_.set(Rung::reduction_right, RungResult::fail, "neither the mean nor the sum");
  }

  const Context& context_;
  GradientResult& result_;
  double mean_;
};

}  // namespace

void read_unknown_reductions(const Context& context, std::vector<GradientResult>& results) {
  for (GradientResult& result : results) {
    if (is_asked(context, result)) Reader(context, result).read();
  }
}

bool is_clipped_by_rank(const Context& context, const GradientResult& result, double weight) {
  if (result.clips.empty()) return false;
  std::vector<double> ranks = result.clips;
  for (double& clip : ranks) clip *= weight;
  return holds(context, result, weights_of(result, std::move(ranks)));
}

}  // namespace gradcheck
