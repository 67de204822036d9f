// SPDX-License-Identifier: Apache-2.0
#include "run/command_program.h"

#include <filesystem>

#include "launch/brief_command.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

namespace fs = std::filesystem;

constexpr double kAskSeconds = 30;

// Prints the requirements that are not met, one a line. Only `name` and `name==version` are known.
constexpr const char* kAskPackages =
    "import sys\n"
    "from importlib.metadata import PackageNotFoundError, version\n"
    "for wanted in sys.argv[1:]:\n"
    "    name, _, exact = wanted.partition('==')\n"
    "    try:\n"
    "        found = version(name)\n"
    "    except PackageNotFoundError:\n"
    "        found = None\n"
    "    if found is None or exact and found.split('+')[0] != exact:\n"
    "        print(wanted)\n";

fs::path folder_of(const Scenario& scenario) {
  return fs::absolute(fs::path(scenario.file)).parent_path();
}

// .environments lies beside the scenarios or further up: in the source tree that made it.
std::string environment_python(const fs::path& folder, const std::string& name) {
  for (fs::path at = folder; !at.empty(); at = at.parent_path()) {
    const fs::path python = at / ".environments" / name / "bin" / "python";
    std::error_code error;
    if (fs::exists(python, error)) return python.string();
    if (at == at.root_path()) break;
  }
  return "";
}

std::string in_one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

}  // namespace

std::string CommandPrograms::interpreter_for(const Scenario& scenario,
                                             const CommandProgram& program) const {
  if (!program.environment.empty()) {
    return environment_python(folder_of(scenario), program.environment);
  }
  if (!python_.empty()) return fs::absolute(python_).string();
  return host_.env("GRADCHECK_PYTHON").value_or("python3");
}

std::string CommandPrograms::missing_packages(const std::string& python,
                                              const CommandProgram& program) {
  if (program.requirements.empty()) return "";
  std::string key = python;
  for (const std::string& requirement : program.requirements) key += ' ' + requirement;
  if (const auto known = missing_.find(key); known != missing_.end()) return known->second;
  CommandSpec ask;
  ask.argv = {python, "-c", kAskPackages};
  ask.argv.insert(ask.argv.end(), program.requirements.begin(), program.requirements.end());
  const BriefResult answer = run_briefly(ask, kAskSeconds);
  if (!answer.in_time || answer.status != 0) {
    throw InfrastructureError(python +
                              " did not say what packages it has: " + in_one_line(answer.errors));
  }
  return missing_[key] = in_one_line(answer.out);
}

CommandPrograms::Prepared CommandPrograms::prepare(const Scenario& scenario,
                                                   const CommandProgram& program) {
  Prepared prepared;
  const std::string python = interpreter_for(scenario, program);
  if (python.empty()) {
    prepared.reason_to_skip = "there is no environment " + program.environment +
                              "; make it with: scripts/environments " + program.environment;
    return prepared;
  }
  const std::string missing = missing_packages(python, program);
  if (!missing.empty()) {
    prepared.reason_to_skip =
        "packages are missing; type: " + python + " -m pip install " + missing;
    return prepared;
  }
  JobSpec& job = prepared.job;
  job.argv = program.argv;
  if (job.argv.front() == "python") job.argv.front() = python;
  job.directory = folder_of(scenario).string();
  job.ranks = program.starts_its_ranks ? 0 : scenario.ranks;
  job.timeout_s = scenario.timeout_s;
  job.quiet = true;
  // torchrun and its like lie beside the interpreter.
  if (python.find('/') != std::string::npos) {
    job.path_prefix = fs::path(python).parent_path().string();
  }
  return prepared;
}

}  // namespace gradcheck
