// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <string_view>

#include "model/errors.h"

namespace gradcheck {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& text, const char* wanted) {
  throw UsageError(option + " " + text + ": " + wanted);
}

template <typename T>
std::optional<T> number_from(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

Tolerance tolerance_from(const std::string& text) {
  constexpr const char* kWanted = "exact, ulp=N or norm=X is wanted, X from 0 to 1";
  Tolerance tolerance;
  if (text.empty() || text == "exact") return tolerance;
  if (text.starts_with("ulp=")) {
    const auto ulps = number_from<std::uint64_t>(std::string_view(text).substr(4));
    if (!ulps) refuse("--tolerance", text, kWanted);
    tolerance.kind = ToleranceKind::ulp;
    tolerance.ulps = *ulps;
  } else if (text.starts_with("norm=")) {
    const auto norm = number_from<double>(std::string_view(text).substr(5));
    const bool good = norm && *norm >= 0 && *norm <= 1;
    if (!good) refuse("--tolerance", text, kWanted);
    tolerance.kind = ToleranceKind::norm;
    tolerance.norm = *norm;
  } else {
    refuse("--tolerance", text, kWanted);
  }
  return tolerance;
}

void take_reduction(const std::string& text, CompareOptions& options) {
  constexpr const char* kWanted = "mean, sum, none or factor=K is wanted";
  if (text.empty()) return;
  if (text.starts_with("factor=")) {
    const auto factor = number_from<double>(std::string_view(text).substr(7));
    const bool good = factor && *factor != 0 && *factor >= -1e30 && *factor <= 1e30;
    if (!good) refuse("--reduction", text, kWanted);
    options.reduction = Reduction::factor;
    options.factor = *factor;
    return;
  }
  const auto reduction = reduction_from_name(text);
  const bool known =
      reduction == Reduction::mean || reduction == Reduction::sum || reduction == Reduction::none;
  if (!known) refuse("--reduction", text, kWanted);
  options.reduction = *reduction;
}

std::optional<DType> wire_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "fp32" || text == "f32") return DType::f32;
  if (text == "fp16" || text == "f16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  refuse("--wire-dtype", text, "fp32, fp16 or bf16 is wanted");
}

}  // namespace

void add_compare(CLI::App& app, CompareWords& words) {
  app.add_option("dumps", words.ranks, "Files, folders or quoted patterns: a dump a rank")
      ->type_name("FILE|DIR");
  app.add_option("--local", words.locals, "Gradients before the reduction, likewise")
      ->type_name("FILE|DIR")
      ->allow_extra_args(false);
  app.add_option("--reduction", words.reduction, "Of --local: mean (default), sum, none, factor=K")
      ->type_name("R");
  app.add_option("--wire-dtype", words.wire_dtype, "Type that gradients travelled in")
      ->type_name("NAME");
  app.add_option("--reference", words.reference, "The same tensors of another run")
      ->type_name("FILE|DIR");
  app.add_option("--tolerance", words.tolerance,
                 "Towards --reference: exact (default), ulp=N, norm=X")
      ->type_name("T");
}

CompareOptions compare_options_from(const CompareWords& words) {
  if (words.ranks.empty()) {
    throw UsageError(
        "compare takes a dump a rank: gradcheck compare rank0.safetensors "
        "rank1.safetensors, a folder or a pattern");
  }
  const bool audits = !words.locals.empty();
  if (!words.reduction.empty() && !audits) throw UsageError("--reduction needs --local");
  if (!words.wire_dtype.empty() && !audits) throw UsageError("--wire-dtype needs --local");
  if (!words.tolerance.empty() && words.reference.empty()) {
    throw UsageError("--tolerance needs --reference: ranks are compared bit for bit");
  }
  CompareOptions options;
  options.ranks = words.ranks;
  options.locals = words.locals;
  options.reference = words.reference;
  options.tolerance = tolerance_from(words.tolerance);
  take_reduction(words.reduction, options);
  options.wire_dtype = wire_from(words.wire_dtype);
  return options;
}

}  // namespace gradcheck
