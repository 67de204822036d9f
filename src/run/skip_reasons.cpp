// SPDX-License-Identifier: Apache-2.0
#include "run/skip_reasons.h"

#include <filesystem>
#include <utility>

#include "model/errors.h"

namespace gradcheck {

bool needs_nccl(const Scenario& scenario, const NativeProgram& program) {
  for (const std::string& need : scenario.needs) {
    if (need == "nccl" || need == "gpu") return true;
  }
  return program.backend == "nccl";
}

SkipReasons::SkipReasons(const Host& host, std::string python, std::string rank_binary)
    : programs_(host, std::move(python)), rank_binary_(std::move(rank_binary)) {}

std::string SkipReasons::of(const Scenario& scenario, const Arm& arm) {
  if (arm.program.native) {
    if (needs_nccl(scenario, *arm.program.native)) return "the native lab runs on Gloo only";
    if (std::filesystem::exists(rank_binary_)) return "";
    return "gradcheck-rank is not built: no LibTorch";
  }
  try {
    return programs_.prepare(scenario, *arm.program.command).reason_to_skip;
  } catch (const InfrastructureError& error) {
    return error.what();
  }
}

std::string SkipReasons::of(const Scenario& scenario) {
  for (const Arm& arm : scenario.arms) {
    std::string reason = of(scenario, arm);
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace gradcheck
