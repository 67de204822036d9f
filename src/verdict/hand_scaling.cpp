// SPDX-License-Identifier: Apache-2.0
#include "verdict/hand_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "verdict/findings.h"

namespace gradcheck {
namespace {

constexpr double kSameFactor = 1e-3;  // steps whose factors are this close have one factor
constexpr double kNearShare = 0.01;   // a factor this close to 1/N is called 1/N

bool is_near(double value, double target, double share) {
  return std::abs(value - target) <= share * std::abs(target);
}

bool is_division(double factor, std::size_t ranks) {
  const double share = 1 / static_cast<double>(ranks);
  return ranks > 1 &&
         (is_near(factor, share, kNearShare) || is_near(factor, share * share, kNearShare));
}

// Of all gradients on all ranks; nothing where there is none, or one that clipping does not make.
std::optional<double> common_factor(const Context& context,
                                    const std::vector<UnseenFactor>& gradients) {
  const double first = gradients.front().factors.front();
  for (const UnseenFactor& gradient : gradients) {
    const double slack = 2 * gradient.slack;
    for (const double factor : gradient.factors) {
      if (!is_near(factor, first, slack) || !(factor > 0) || factor >= 1 - slack) return {};
    }
    if (is_division(first, line_of(context, *gradient.result).group.size())) return {};
  }
  return first;
}

using Factors = std::map<std::int64_t, double>;  // by step

// The same factor step after step depends on no norm. Steps without one had none to clip.
bool varies(const Factors& factors, std::size_t steps) {
  return factors.size() < steps ||
         std::any_of(
             factors.begin(), factors.end(),
             [&](const auto& step) {
               return !is_near(step.second, factors.begin()->second, kSameFactor);
             });
}

std::string text_of(std::string_view model, const Factors& factors) {
  const auto [least, most] =
      std::minmax_element(factors.begin(), factors.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string by = factors.size() == 1
                             ? factor_text(least->second)
                             : factor_text(least->second) + " to " + factor_text(most->second);
  return fmt::format(
      "gradients of {} were scaled by {} between backward and step in {}, all alike: taken for "
      "clipping by hand",
      model, by, counted(factors.size(), "step"));
}

}  // namespace

void HandScaling::add(UnseenFactor seen) {
  const StepOfModel key{seen.result->tensor.model, seen.result->step};
  steps_[key].push_back(std::move(seen));
}

std::vector<UnseenFactor> HandScaling::settle(const Context& context,
                                              std::vector<std::string>& notes) {
  std::map<NameId, Factors> clipped;
  for (const auto& [key, gradients] : steps_) {
    if (context.input.native) break;  // ranks of our own lab clip where it is seen
    const auto factor = common_factor(context, gradients);
    if (factor) clipped[key.first][key.second] = *factor;
  }
  std::map<NameId, std::size_t> counts;  // of steps
  for (const auto& [key, gradients] : steps_) ++counts[key.first];
  std::set<NameId> undecided;
  std::erase_if(clipped, [&](const auto& model) {
    const std::size_t steps = counts.at(model.first);
    if (steps == 1) undecided.insert(model.first);
    return !varies(model.second, steps);
  });
  for (const auto& [model, factors] : clipped) {
    notes.push_back(text_of(context.table().text(model), factors));
  }
  std::vector<UnseenFactor> left;
  for (auto& [key, gradients] : steps_) {
    const auto model = clipped.find(key.first);
    if (model != clipped.end() && model->second.contains(key.second)) continue;
    for (UnseenFactor& gradient : gradients) {
      gradient.is_undecided = undecided.contains(key.first);
      left.push_back(std::move(gradient));
    }
  }
  return left;
}

}  // namespace gradcheck
