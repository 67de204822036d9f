// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <string>

#include "cli/agent_files.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "model/errors.h"
#include "run/evidence_files.h"
#include "run/exec_runner.h"
#include "scenario/load.h"

namespace gradcheck {
namespace {

ExecOptions options_of(const CommandLine& line, const std::vector<std::string>& argv) {
  ExecOptions options;
  options.job = line.job;
  if (!line.plan_file.empty()) options.rules = load_plan(line.plan_file);
  options.fail_on = line.fail_on;
  options.all_tensors = line.verbosity > 0;
  options.argv = argv;
  options.tool_version = GRADCHECK_VERSION;
  return options;
}

// A report for machines owns stdout; what the job prints then goes to stderr.
bool job_may_use_stdout(const CommandLine& line) {
  bool console = line.format == "console";
  for (const ReportRequest& request : line.reports) {
    if (request.path == "-") console = request.format == "console";
  }
  return console;
}

void show(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fputc('\n', stream);
  std::fflush(stream);
}

}  // namespace

ExitCode exec_command(const CommandLine& line, const std::vector<std::string>& argv,
                      const Host& host) {
  ExecOptions options = options_of(line, argv);
  options.agent = agent_files(host);
  options.job.argv = with_python(std::move(options.job.argv), line.python);
  if (!options.job.keep_directory.empty()) {
    require_empty_folder("--keep", options.job.keep_directory);
  }
  if (!options.job.evidence_directory.empty()) {
    require_empty_folder("--evidence", options.job.evidence_directory);
    options.job.evidence_directory =
        std::filesystem::absolute(options.job.evidence_directory).string();
  }
  std::FILE* out = job_may_use_stdout(line) ? stdout : stderr;
  options.job.output_to_stderr = out == stderr;
  options.show = [out](Stream stream, const std::string& text) {
    show(stream == Stream::out ? out : stderr, text);
  };
  FanOut reports = open_reports(line.format, line.reports, console_options(line, host));
  const Report report = run_exec(options, host, reports);
  return exit_code(report.summary.exit_code, reports);
}

ExitCode judge_command(const CommandLine& line, const std::vector<std::string>& argv,
                       const Host& host) {
  ExecOptions options = options_of(line, argv);
  options.job.argv = line.files;
  FanOut reports = open_reports(line.format, line.reports, console_options(line, host));
  const Report report = run_judge(line.files.front(), options, host, reports);
  return exit_code(report.summary.exit_code, reports);
}

}  // namespace gradcheck
