// SPDX-License-Identifier: Apache-2.0
#include "run/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/phrases.h"
#include "run/crash_words.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

const HelloRecord* first_hello(const JobWorld& world) {
  for (int rank = 0; rank < world.size; ++rank) {
    const auto& hello = world.reader.table().rank(rank).hello;
    if (hello) return &*hello;
  }
  return nullptr;
}

// Launchers by the variables that they give to ranks.
std::string launcher_of(const HelloRecord& hello) {
  const auto has = [&](std::string_view name) {
    return std::any_of(hello.env.begin(), hello.env.end(),
                       [&](const auto& variable) { return variable.first == name; });
  };
  if (has("TORCHELASTIC_RUN_ID")) return "torchrun";
  if (has("OMPI_COMM_WORLD_RANK")) return "Open MPI";
  if (has("PMI_RANK")) return "MPI";
  if (has("SLURM_PROCID")) return "Slurm";
  return "";
}

const CommandExit* first_failure(const JobEvidence& evidence) {
  const auto found =
      std::find_if(evidence.exits.begin(), evidence.exits.end(),
                   [](const CommandExit& exit) { return exit.status != 0 || exit.signal != 0; });
  return found == evidence.exits.end() ? nullptr : &*found;
}

// 128 + n of a signal, as a shell says it; unknown where the job was not run by us, or ended by us.
std::optional<int> status_of(const JobEvidence& evidence) {
  if (evidence.exits.empty() || evidence.stopped || !evidence.deadline.empty()) return std::nullopt;
  const CommandExit* failure = first_failure(evidence);
  if (failure == nullptr) return 0;
  return failure->signal != 0 ? 128 + failure->signal : failure->status;
}

ArmReport judge_world(const JobWorld& world, const Payloads& payloads, const JobSpec& spec,
                      const std::vector<PlanRule>& rules, bool all_tensors,
                      std::optional<int> status) {
  const EvidenceTable& table = world.reader.table();
  ArmReport report =
      judge({table, rules, payloads.views, 0, 0, false, all_tensors, status, payloads.log_probs});
  report.world_size = world.size;
  report.probe = "python";
  const HelloRecord* hello = first_hello(world);
  if (hello != nullptr) {
    report.backend = hello->backend;
    const std::string launcher = launcher_of(*hello);
    if (spec.ranks == 0 && !launcher.empty()) {
      report.notes.push_back("ranks were numbered by " + launcher);
    }
  }
  return report;
}

void blame(ArmReport& report, const std::string& problem) {
  report.outcome = Outcome::error;
  report.headline = problem;
}

std::string last_line(const std::string& text) {
  std::string_view rest = text;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  const auto start = rest.rfind('\n');
  return std::string(start == std::string_view::npos ? rest : rest.substr(start + 1));
}

std::string why_silent(const SeenProcesses& seen) {
  if (seen.python == 0) {
    return "no Python process loaded the agent: the command runs no Python, or runs it with -I, -E "
           "or -S";
  }
  if (seen.torch == 0) return "Python ran, but nothing imported torch";
  if (seen.wrapped == 0) {
    return "torch was imported, but there was no DistributedDataParallel and no optimizer step";
  }
  return "no rank reached the front";
}

std::string how_it_ended(const CommandExit& exit) {
  if (exit.signal != 0) return "was killed by " + signal_text(exit.signal);
  return fmt::format("exited with status {}", exit.status);
}

// Nothing was recorded: the job's own failure says why, or the agent's marks do.
ArmReport judge_silence(const JobEvidence& evidence, const JobSpec& spec) {
  ArmReport report;
  report.probe = "python";
  report.world_size = std::max(1, spec.ranks);
  const CommandExit* failure = first_failure(evidence);
  if (!evidence.deadline.empty()) {
    report.outcome = Outcome::error;
    report.headline = "the job passed the deadline " + evidence.deadline + " and recorded nothing";
    report.findings = {finding_of(803, report.headline)};
  } else if (failure != nullptr) {
    const std::string& errors = evidence.last_errors[static_cast<std::size_t>(failure->process)];
    report.outcome = failure->signal != 0 ? Outcome::error : Outcome::raised;
    report.headline =
        fmt::format("the job {} before anything was recorded", how_it_ended(*failure));
    const std::string last = last_line(errors);
    if (!last.empty()) report.headline += ": " + last;
    report.findings = {finding_of(failure->signal != 0 ? 802 : 801, report.headline)};
    RankRow& row = report.ranks.emplace_back();
    row.rank = failure->process;
    row.end = name_of(failure->signal != 0 ? RankEnd::signalled : RankEnd::exited);
    row.status = failure->signal != 0 ? failure->signal : failure->status;
    row.stderr_tail = errors;
  } else {
    report.outcome = Outcome::inconclusive;
    report.headline = "nothing compared: " + why_silent(evidence.seen);
    report.findings = {finding_of(604, report.headline)};
  }
  return report;
}

// What the front knows and no rank's evidence shows. It forbids `consistent`, and nothing else.
void doubt(ArmReport& report, const std::string& why) {
  report.findings.push_back(finding_of(604, why));
  if (report.outcome != Outcome::consistent) return;
  report.outcome = Outcome::inconclusive;
  report.headline = "nothing proven: " + why;
}

void doubt_where_ranks_hide(const JobEvidence& evidence, const JobSpec& spec, ArmReport& report) {
  if (evidence.seen.forked > 0) {
    doubt(report, fmt::format("not checked: backwards in {} process(es) forked from a rank",
                              evidence.seen.forked));
  }
  if (evidence.seen.helpers > 0) {
    report.notes.push_back(fmt::format("not checked: what {} process(es) started by a rank trained",
                                       evidence.seen.helpers));
  }
  if (spec.ranks > 1 && report.world_size < spec.ranks) {
    doubt(report, fmt::format("{} ranks were started, but this world has {}: they do not train "
                              "together",
                              spec.ranks, report.world_size));
  }
}

bool everyone_said_goodbye(const JobEvidence& evidence) {
  bool any = false;
  for (const auto& world : evidence.worlds->worlds()) {
    for (int rank = 0; rank < world->size; ++rank) {
      const auto& bye = world->reader.table().rank(rank).bye;
      if (!bye || bye->status != 0) return false;
      any = true;
    }
  }
  return any;
}

// A launcher that reports a rank's abort in its destructors exits with 1: the ranks' goodbyes know
// better.
bool is_excused(const JobEvidence& evidence, const CommandExit& failure) {
  if (!everyone_said_goodbye(evidence)) return false;
  if (failure.signal != 0) return true;
  const std::string& errors = evidence.last_errors[static_cast<std::size_t>(failure.process)];
  return evidence.exits.size() == 1 && (errors.empty() || names_a_crash(errors));
}

std::string excused_exit(const JobEvidence& evidence) {
  const CommandExit* failure = first_failure(evidence);
  if (failure == nullptr || evidence.stopped || !is_excused(evidence, *failure)) return "";
  return "the command " + how_it_ended(*failure) + " after every rank had ended well";
}

}  // namespace

std::vector<ArmReport> judge_job(const JobEvidence& evidence, const JobSpec& spec,
                                 const std::vector<PlanRule>& rules, bool all_tensors) {
  std::vector<ArmReport> reports;
  const auto& worlds = evidence.worlds->worlds();
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    reports.push_back(judge_world(*worlds[i], evidence.payloads[i], spec, rules, all_tensors,
                                  status_of(evidence)));
  }
  for (ArmReport& report : reports) doubt_where_ranks_hide(evidence, spec, report);
  if (reports.empty()) reports.push_back(judge_silence(evidence, spec));
  const auto& problems = evidence.worlds->problems();
  for (ArmReport& report : reports) {
    if (!problems.empty()) blame(report, problems.front());
    for (const std::string& note : evidence.worlds->notes()) report.notes.push_back(note);
    if (const std::string excused = excused_exit(evidence); !excused.empty()) {
      report.notes.push_back(excused);
    }
    if (evidence.stopped) report.notes.emplace_back("the job was ended after its checked steps");
  }
  return reports;
}

std::string bad_exit(const JobEvidence& evidence) {
  if (evidence.stopped || !evidence.deadline.empty()) return "";
  const CommandExit* failure = first_failure(evidence);
  if (failure == nullptr) return "";
  const bool own_rank = evidence.exits.size() > 1;
  if (is_excused(evidence, *failure)) return "";
  const std::string who = own_rank ? fmt::format("rank {}", failure->process) : "the job";
  return who + " " + how_it_ended(*failure);
}

void hold_against_exit(ArmReport& arm, const std::string& problem) {
  if (problem.empty() || arm.verdict != Verdict::pass) return;
  arm.verdict = Verdict::error;
  arm.reason = problem;
}

Pairs versions_of(const JobEvidence& evidence) {
  for (const auto& world : evidence.worlds->worlds()) {
    if (const HelloRecord* hello = first_hello(*world)) return hello->versions;
  }
  return {};
}

}  // namespace gradcheck
