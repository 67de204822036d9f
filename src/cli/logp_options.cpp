// SPDX-License-Identifier: Apache-2.0
#include "cli/logp_options.h"

#include <charconv>
#include <cmath>

#include "model/errors.h"

namespace gradcheck {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& text, const char* wanted) {
  throw UsageError(option + " " + text + ": " + wanted);
}

double number_from(const std::string& option, const std::string& text, double least, double most) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool good = error == std::errc() && rest == end && value >= least && value <= most;
  if (!good) refuse(option, text, "a number in its range is wanted");
  return value;
}

std::int64_t count_from(const std::string& option, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) refuse(option, text, "a count is wanted");
  return value;
}

std::optional<DType> dtype_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "fp32" || text == "f32") return DType::f32;
  if (text == "fp16" || text == "f16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  refuse("--dtype", text, "fp32, fp16 or bf16 is wanted");
}

std::optional<Regime> regime_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto regime = regime_from_name(text);
  if (!regime) {
    refuse("--regime", text, "same_kernels, same_stack, other_engine or quantised is wanted");
  }
  return regime;
}

void take_sampling(const std::string& word, LogProbConditions& conditions) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "top_p") {
    conditions.top_p = number_from("--sampling top_p", value, 1e-6, 1);
  } else if (key == "min_p") {
    conditions.min_p = number_from("--sampling min_p", value, 0, 1);
  } else if (key == "top_k") {
    conditions.top_k = count_from("--sampling top_k", value);
  } else {
    refuse("--sampling", word, "top_p=P, top_k=K or min_p=P is wanted");
  }
}

void take_sampling_list(const std::string& list, LogProbConditions& conditions) {
  std::size_t start = 0;
  while (start <= list.size()) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    take_sampling(list.substr(start, end - start), conditions);
    start = end + 1;
  }
}

}  // namespace

LogProbConditions conditions_from(const LogpWords& words) {
  LogProbConditions conditions;
  conditions.regime = regime_from(words.regime);
  conditions.dtype = dtype_from(words.dtype);
  conditions.mixture_of_experts = words.experts;
  for (const std::string& list : words.sampling) take_sampling_list(list, conditions);
  if (!words.temperature.empty()) {
    conditions.temperature = number_from("--temperature", words.temperature, 1e-6, 1e6);
  }
  if (!words.lag.empty()) conditions.lag = count_from("--lag", words.lag);
  if (!words.clip.empty()) conditions.clip_epsilon = number_from("--clip", words.clip, 1e-9, 100);
  return conditions;
}

}  // namespace gradcheck
