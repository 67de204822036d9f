// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "model/errors.h"
#include "model/finding.h"
#include "model/nearest.h"
#include "model/report.h"

namespace gradcheck {
namespace {

std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const CodeInfo& code : all_codes()) names.push_back(code_text(code.code));
  for (const CauseInfo& cause : all_causes()) names.emplace_back(cause.name);
  return names;
}

std::string explained(const CodeInfo& code) {
  const std::string text = code_text(code.code);
  return fmt::format("{} ({}): {}\nnext: {}\nmore: docs/findings/{}.md\n", text,
                     name_of(code.severity), code.title, code.hint, text);
}

std::string explained(const CauseInfo& cause) {
  return fmt::format("{}: {}\nnext: {}\n", cause.name, cause.summary, cause.next);
}

}  // namespace

ExitCode explain_command(const CommandLine& line) {
  if (const auto code = code_from_text(line.topic)) {
    print(explained(*find_code(*code)));
  } else if (const auto cause = cause_from_name(line.topic)) {
    print(explained(info_of(*cause)));
  } else {
    throw UsageError("nothing is known about '" + line.topic + "'" +
                     did_you_mean(line.topic, topics()));
  }
  return ExitCode::passed;
}

ExitCode version_command() {
  print(fmt::format("gradcheck {} ({}.{}, evidence-1, scenario-1)\n", GRADCHECK_VERSION,
                    kReportSchema, kReportSchemaMinor));
  return ExitCode::passed;
}

}  // namespace gradcheck
