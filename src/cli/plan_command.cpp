// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/commands.h"
#include "model/errors.h"
#include "model/json/plan_file.h"
#include "reports/arm_tables.h"
#include "run/exec_runner.h"
#include "scenario/load.h"

namespace gradcheck {
namespace {

std::string as_tables(const std::vector<ArmReport>& worlds) {
  std::string text;
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    if (worlds.size() > 1) text += fmt::format("world {}\n", i);
    for (const std::string& line : lines_of(plan_table(worlds[i]))) text += line + "\n";
  }
  return text;
}

}  // namespace

ExitCode plan_command(const CommandLine& line) {
  ExecOptions options;
  if (!line.plan_file.empty()) options.rules = load_plan(line.plan_file);
  const std::vector<ArmReport> worlds = judged_worlds(line.files.front(), options);
  if (line.format == "json") {
    if (worlds.size() != 1) {
      throw UsageError(fmt::format("{} holds {} worlds of ranks; give the folder of one",
                                   line.files.front(), worlds.size()));
    }
    print(plan_to_json(worlds.front().plan, worlds.front().world_size));
  } else if (line.format == "console") {
    print(as_tables(worlds));
  } else {
    throw UsageError("gradcheck plan knows the formats console and json");
  }
  return ExitCode::passed;
}

}  // namespace gradcheck
