// SPDX-License-Identifier: Apache-2.0
#include "scenario/load.h"

#include <filesystem>
#include <fstream>

#include "model/errors.h"
#include "model/json/scenario.h"

namespace gradcheck {
namespace {

// The decoder refuses anything longer, so no more than this is read.
constexpr std::size_t kReadLimit = (std::size_t{1} << 20) + 1;

std::string contents_of(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw ScenarioError(path, "", "there is no such file");
  if (!std::filesystem::is_regular_file(status)) throw ScenarioError(path, "", "is not a file");
  std::ifstream stream(path, std::ios::binary);
  std::string text(kReadLimit, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof() && !stream.good()) throw ScenarioError(path, "", "cannot be read");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace

std::vector<Scenario> load_scenarios(const std::string& path) {
  return scenarios_from_json(contents_of(path), path);
}

std::vector<PlanRule> load_plan(const std::string& path) {
  return plan_from_json(contents_of(path), path);
}

}  // namespace gradcheck
