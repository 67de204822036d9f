// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands.h"
#include "model/errors.h"
#include "model/json/catalog.h"
#include "reports/text.h"
#include "scenario/catalog.h"
#include "scenario/load.h"

namespace gradcheck {
namespace {

// --list without a selection shows everything.
std::vector<Scenario> selected(const CommandLine& line, const Host& host) {
  Selection selection = line.selection;
  if (selection.empty()) selection.all = true;
  return select(load_catalog(scenario_directory(line, host)), selection);
}

std::string arm_list(const Scenario& scenario) {
  std::string text;
  for (const Arm& arm : scenario.arms) {
    const Outcome outcome = arm.expect.outcome.value_or(Outcome::consistent);
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", arm.name, name_of(outcome));
  }
  return text;
}

std::string as_table(const std::vector<Scenario>& scenarios) {
  std::size_t width = 0;
  for (const Scenario& scenario : scenarios) width = std::max(width, scenario.name.size());
  std::string text;
  for (const Scenario& scenario : scenarios) {
    text += fmt::format("{:<{}}  {} rank{}  {}\n", scenario.name, width, scenario.ranks,
                        scenario.ranks == 1 ? " " : "s", arm_list(scenario));
    text += fmt::format("{:<{}}  {}\n", "", width, printable(scenario.description));
  }
  return text + fmt::format("{} scenario{}\n", scenarios.size(), scenarios.size() == 1 ? "" : "s");
}

}  // namespace

std::string scenario_directory(const CommandLine& line, const Host& host) {
  if (!line.scenario_directory.empty()) {
    if (std::filesystem::is_directory(line.scenario_directory)) return line.scenario_directory;
    throw UsageError("--scenario-dir " + line.scenario_directory + ": there is no such folder");
  }
  if (const auto folder = host.env("GRADCHECK_SCENARIOS")) {
    if (std::filesystem::is_directory(*folder)) return *folder;
    throw UsageError("GRADCHECK_SCENARIOS=" + *folder + ": there is no such folder");
  }
  const std::string installed = host.executable_directory + "/../share/gradcheck/scenarios";
  return std::filesystem::is_directory(installed) ? installed : GRADCHECK_SCENARIO_DIR;
}

ExitCode list_command(const CommandLine& line, const Host& host) {
  const std::vector<Scenario> scenarios = selected(line, host);
  if (line.format == "json") {
    print(catalog_to_json(scenarios) + "\n");
  } else if (line.format == "console") {
    print(as_table(scenarios));
  } else {
    throw UsageError("--list knows the formats console and json");
  }
  return ExitCode::passed;
}

ExitCode validate_command(const CommandLine& line, const Host& host) {
  std::size_t scenarios = 0;
  if (line.files.empty()) scenarios = selected(line, host).size();
  for (const std::string& file : line.files) scenarios += load_scenarios(file).size();
  print(fmt::format("{} scenario{} valid\n", scenarios, scenarios == 1 ? " is" : "s are"));
  return ExitCode::passed;
}

}  // namespace gradcheck
