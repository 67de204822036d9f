// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/about.h"
#include "cli/compare_options.h"
#include "cli/logp_options.h"
#include "model/errors.h"
#include "model/nearest.h"
#include "reports/registry.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 8> kCommands = {"run",  "exec",    "judge",  "plan",
                                                       "logp", "compare", "report", "explain"};
// Part of the design, not of this version.
constexpr std::array<std::string_view, 1> kLaterCommands = {"selftest"};

constexpr std::int64_t kMostSteps = 1'000'000'000;

// Values that CLI11 fills and that need a second look.
struct RawOptions {
  bool list = false;
  bool validate = false;
  bool version = false;
  bool no_color = false;
  int ranks = 0;
  std::string backend;
  std::string dtype;
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  double timeout = 0;
  std::string fail_on = "error";
  std::vector<std::string> reports;
};

void add_selection(CLI::App& app, CommandLine& line, RawOptions& raw) {
  app.add_option("--scenario", line.selection.names, "Scenario to run: a name or a JSON file")
      ->type_name("NAME|PATH")
      ->allow_extra_args(false);
  app.add_option("--filter", line.selection.filter,
                 "Scenarios whose name matches; GLOB-NEG excludes")
      ->type_name("GLOB");
  app.add_flag("--all", line.selection.all, "Every scenario");
  app.add_option("--tag", line.selection.tags,
                 "Only scenarios with this tag, native or python (repeatable)")
      ->type_name("TAG")
      ->allow_extra_args(false);
  app.add_option("--arm", line.arms, "Only this arm (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--scenario-dir", line.scenario_directory, "Folder of the scenarios")
      ->type_name("DIR");
  app.add_flag("--list", raw.list, "List the scenarios");
  app.add_flag("--validate", raw.validate, "Check scenario files and run nothing");
  app.add_option("files", line.files, "Scenario files for --validate")->type_name("FILE");
}

void add_overrides(CLI::App& app, RawOptions& raw) {
  const std::string group = "Override every arm";
  app.add_option("--ranks", raw.ranks, "Number of ranks")->type_name("N")->group(group);
  app.add_option("--backend", raw.backend, "gloo or nccl")->type_name("NAME")->group(group);
  app.add_option("--dtype", raw.dtype, "fp32 or bf16")->type_name("NAME")->group(group);
  app.add_option("--seed", raw.seed, "Seed of weights and data")->type_name("N")->group(group);
  app.add_option("--steps", raw.steps, "Optimizer steps")->type_name("N")->group(group);
  app.add_option("--timeout", raw.timeout, "Seconds an arm may take; a step gets a quarter")
      ->type_name("S")
      ->group(group);
}

void add_output(CLI::App& app, CommandLine& line, RawOptions& raw) {
  const std::string group = "Output";
  app.add_option("--format", line.format, "Report on standard output: " + reporter_names())
      ->type_name("F")
      ->group(group);
  app.add_option("--report", raw.reports, "Also write a report; `-` replaces the one on stdout")
      ->type_name("F=PATH")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--fail-on", raw.fail_on, "Lowest severity that fails: warning or error")
      ->type_name("SEVERITY")
      ->group(group);
  app.add_flag("-q,--quiet", line.quiet, "Verdict lines only")->group(group);
  app.add_flag("-v,--verbose", line.verbosity, "All tensors, plan and ranks")->group(group);
  app.add_option("--color", line.color, "auto, always or never")->type_name("WHEN")->group(group);
  app.add_flag("--no-color", raw.no_color, "Same as --color never")->group(group);
}

void add_plan_file(CLI::App& app, CommandLine& line) {
  app.add_option("--plan", line.plan_file, "What is declared about tensors: a JSON array")
      ->type_name("FILE");
}

void add_job(CLI::App& app, CommandLine& line) {
  JobSpec& job = line.job;
  app.add_option("-n,--ranks", job.ranks, "Start N ranks; without, the command starts its own")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxRanks));
  app.add_option("--every", job.every, "Check steps 0, 1, 2 and then every K-th (100)")
      ->type_name("K")
      ->check(CLI::Range(std::int64_t{1}, kMostSteps));
  app.add_option("--steps", job.steps, "End checking after S checked steps")
      ->type_name("S")
      ->check(CLI::Range(std::int64_t{1}, kMostSteps));
  app.add_flag("--stop-after-steps", job.stop_after_steps, "Then end the job: no failure");
  app.add_option("--timeout", job.timeout_s, "Seconds that the job may take (no limit)")
      ->type_name("S")
      ->check(CLI::Range(1e-3, 1e7));
  app.add_option("--keep", job.keep_directory, "Leave the evidence in an empty folder")
      ->type_name("DIR");
  app.add_option("--evidence", job.evidence_directory, "Ranks write evidence there, no socket")
      ->type_name("DIR");
  app.add_flag("--exact", job.exact, "Ranks keep local gradients and wait for the front");
  app.add_option("--python", line.python, "Interpreter that `python` stands for")
      ->type_name("PATH");
  add_plan_file(app, line);
}

void require_one_path(const CommandLine& line, const std::string& what) {
  if (line.files.size() != 1) throw UsageError("gradcheck " + what);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string with_help(const std::string& suggestion) {
  return (suggestion.empty() ? "; " : suggestion + " ") + "`gradcheck --help` shows all";
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  throw UsageError("unknown option '" + option + "'" +
                   with_help(did_you_mean(option, option_names(app))));
}

// CLI11's own sentences are kept where they name the option; its exit codes are not.
void parse_into(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them last first
  app.allow_extras();
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const std::string& word : app.remaining()) refuse_unknown(app, word);
}

void require_one_of(const std::string& option, const std::string& value,
                    const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  std::string list;
  for (const std::string& word : allowed) list += (list.empty() ? "" : ", ") + word;
  throw UsageError(option + " " + value + ": must be one of " + list +
                   did_you_mean(value, allowed));
}

void take_overrides(const CLI::App& app, const RawOptions& raw, Overrides& overrides) {
  if (app.count("--ranks") > 0) overrides.ranks = raw.ranks;
  if (app.count("--backend") > 0) overrides.backend = raw.backend;
  if (app.count("--dtype") > 0) overrides.dtype = raw.dtype;
  if (app.count("--seed") > 0) overrides.seed = raw.seed;
  if (app.count("--steps") > 0) overrides.steps = raw.steps;
  if (app.count("--timeout") > 0) overrides.timeout_s = raw.timeout;
}

void take_output(const RawOptions& raw, CommandLine& line) {
  for (const std::string& text : raw.reports) line.reports.push_back(request_from_text(text));
  require_one_of("--fail-on", raw.fail_on, {"warning", "error"});
  line.fail_on = *severity_from_name(raw.fail_on);
  if (raw.no_color) line.color = "never";
  require_one_of("--color", line.color, {"auto", "always", "never"});
}

// True if the words were understood; false if help was asked for and stands in `line`.
bool parsed(CLI::App& app, const std::vector<std::string>& words, CommandLine& line) {
  try {
    parse_into(app, words);
    return true;
  } catch (const CLI::CallForHelp&) {
    line.command = Command::help;
    line.help_text = app.help();
    return false;
  }
}

CommandLine parse_run(const std::vector<std::string>& arguments) {
  CLI::App app(kAbout);
  app.name("gradcheck");
  app.footer(kFooter);
  CommandLine line;
  RawOptions raw;
  add_selection(app, line, raw);
  add_overrides(app, raw);
  add_output(app, line, raw);
  app.add_option("--python", line.python, "Interpreter that `python` stands for in commands")
      ->type_name("PATH");
  app.add_flag("--version", raw.version, "Version of the tool and its schemas");
  if (!parsed(app, arguments, line)) return line;
  take_overrides(app, raw, line.overrides);
  take_output(raw, line);
  if (int{raw.version} + int{raw.list} + int{raw.validate} > 1) {
    throw UsageError("give one of --list, --validate and --version");
  }
  if (raw.version) line.command = Command::version;
  if (raw.list) line.command = Command::list;
  if (raw.validate) line.command = Command::validate;
  if (!line.files.empty() && line.command != Command::validate) {
    throw UsageError("unexpected argument '" + line.files.front() +
                     "'; a scenario is given with --scenario");
  }
  return line;
}

// Everything behind the first `--` is the user's command and is not looked at.
CommandLine parse_exec(const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  CLI::App app(
      "Check an unmodified PyTorch job: gradcheck exec -n 2 -- python train.py\n"
      "The command is run as it is; nothing in the script is edited.");
  app.name("gradcheck exec");
  CommandLine line;
  RawOptions raw;
  line.command = Command::exec;
  add_job(app, line);
  add_output(app, line, raw);
  const bool asks_for_help = std::any_of(arguments.begin(), dashes, [](const std::string& word) {
    return word == "--help" || word == "-h";
  });
  if (dashes == arguments.end() && !asks_for_help) {
    throw UsageError("write -- before the command: gradcheck exec -n 2 -- python train.py");
  }
  if (!parsed(app, {arguments.begin(), dashes}, line)) return line;
  take_output(raw, line);
  line.job.argv.assign(dashes + 1, arguments.end());
  if (line.job.argv.empty()) throw UsageError("there is no command behind --");
  const bool stops = line.job.stop_after_steps;
  if (stops && line.job.steps == 0) throw UsageError("--stop-after-steps needs --steps");
  if (!line.job.keep_directory.empty() && !line.job.evidence_directory.empty()) {
    throw UsageError("give one of --keep and --evidence: both leave the evidence in a folder");
  }
  return line;
}

CommandLine parse_judge(const std::vector<std::string>& arguments) {
  CLI::App app("Judge the evidence of a job that `exec --keep` or `--evidence` left in a folder");
  app.name("gradcheck judge");
  CommandLine line;
  RawOptions raw;
  line.command = Command::judge;
  app.add_option("directory", line.files, "The folder")->type_name("DIR");
  add_plan_file(app, line);
  add_output(app, line, raw);
  if (!parsed(app, arguments, line)) return line;
  take_output(raw, line);
  require_one_path(line, "judge takes one folder");
  return line;
}

CommandLine parse_plan(const std::vector<std::string>& arguments) {
  CLI::App app(
      "What is believed about each tensor of a recorded job, and why: as a table, or with\n"
      "--format json as a file for --plan");
  app.name("gradcheck plan");
  CommandLine line;
  line.command = Command::plan;
  app.add_option("directory", line.files, "Folder that `exec --keep` left")->type_name("DIR");
  add_plan_file(app, line);
  app.add_option("--format", line.format, "console or json")->type_name("F");
  if (!parsed(app, arguments, line)) return line;
  require_one_path(line, "plan takes one folder");
  return line;
}

void add_log_prob_files(CLI::App& app, LogProbFiles& files) {
  const auto role = [&app](const char* option, std::vector<std::string>& paths, const char* help) {
    app.add_option(option, paths, help)->type_name("PATH[:NAME]")->allow_extra_args(false);
  };
  app.add_option("files", files.containers, "Files that hold old, new and mask; one a rank")
      ->type_name("FILE");
  role("--old", files.old_values, "Old log-probs (of the engine, or first); once a rank");
  role("--new", files.new_values, "New log-probs");
  role("--mask", files.mask, "1 where a token counts");
  role("--rollout", files.rollout, "Log-probs of the engine, where old was recomputed");
  role("--ref", files.ref, "Log-probs of the reference model");
  role("--entropy", files.entropy, "Entropy of the new distribution");
  role("--new-repeat", files.new_repeat, "New log-probs of a repeated forward");
  role("--token-ids", files.token_ids, "Ids of the sampled tokens");
}

void add_log_prob_conditions(CLI::App& app, LogpWords& words) {
  app.add_option("--regime", words.regime, "same_kernels, same_stack, other_engine or quantised")
      ->type_name("R");
  app.add_option("--dtype", words.dtype, "What the forward computed in: fp32, fp16 or bf16")
      ->type_name("NAME");
  app.add_flag("--moe", words.experts, "The model is a mixture of experts");
  app.add_option("--sampling", words.sampling, "Declared: top_p=P, top_k=K, min_p=P")
      ->type_name("K=V")
      ->allow_extra_args(false);
  app.add_option("--temperature", words.temperature, "Declared: sampled at T")->type_name("T");
  app.add_option("--lag", words.lag, "Declared: old is K updates behind")->type_name("K");
  app.add_option("--clip", words.clip, "Clip range of the run: 1 ± E")->type_name("E");
}

CommandLine parse_logp(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Judge log-probs that any job dumped: safetensors, .npz, .npy or JSON lines\n"
      "  gradcheck logp --old old.npy --new new.npy --mask mask.npy\n"
      "  gradcheck logp rank0.safetensors rank1.safetensors");
  app.name("gradcheck logp");
  CommandLine line;
  RawOptions raw;
  LogpWords words;
  line.command = Command::logp;
  add_log_prob_files(app, line.log_prob_files);
  add_log_prob_conditions(app, words);
  add_output(app, line, raw);
  if (!parsed(app, arguments, line)) return line;
  take_output(raw, line);
  line.log_prob_conditions = conditions_from(words);
  return line;
}

CommandLine parse_compare(const std::vector<std::string>& arguments) {
  CLI::App app(kCompareAbout);
  app.name("gradcheck compare");
  CommandLine line;
  RawOptions raw;
  CompareWords words;
  line.command = Command::compare;
  add_compare(app, words);
  add_output(app, line, raw);
  if (!parsed(app, arguments, line)) return line;
  take_output(raw, line);
  line.compare = compare_options_from(words);
  return line;
}

CommandLine parse_report(const std::vector<std::string>& arguments) {
  CLI::App app("Show a JSON report again, in any format");
  app.name("gradcheck report");
  CommandLine line;
  RawOptions raw;
  line.command = Command::report;
  app.add_option("file", line.files, "A report that --report json=PATH wrote")
      ->type_name("RUN.json");
  add_output(app, line, raw);
  if (!parsed(app, arguments, line)) return line;
  take_output(raw, line);
  require_one_path(line, "report takes one file");
  return line;
}

CommandLine parse_explain(const std::vector<std::string>& arguments) {
  CommandLine line;
  line.command = Command::explain;
  if (arguments.size() != 1 || arguments.front().starts_with('-')) {
    throw UsageError("write gradcheck explain CODE|CAUSE, such as GC201 or bypass");
  }
  line.topic = arguments.front();
  return line;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return parse_run(arguments);
  const std::string& command = arguments.front();
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (command == "run") return parse_run(rest);
  if (command == "exec") return parse_exec(rest);
  if (command == "judge") return parse_judge(rest);
  if (command == "plan") return parse_plan(rest);
  if (command == "logp") return parse_logp(rest);
  if (command == "compare") return parse_compare(rest);
  if (command == "report") return parse_report(rest);
  if (command == "explain") return parse_explain(rest);
  if (std::find(kLaterCommands.begin(), kLaterCommands.end(), command) != kLaterCommands.end()) {
    throw UsageError("this version does not have the command '" + command + "' yet");
  }
  throw UsageError("unknown command '" + command + "'" +
                   with_help(did_you_mean(command, kCommands)));
}

}  // namespace gradcheck
