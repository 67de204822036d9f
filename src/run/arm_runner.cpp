// SPDX-License-Identifier: Apache-2.0
#include "run/arm_runner.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "launch/clock.h"
#include "launch/deadlines.h"
#include "model/errors.h"
#include "run/job_report.h"
#include "run/native_arm.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

// A native scenario's headline: "qwen3_0_6b: 310 tensors" needs the program's side of the table.
void describe_program(const Scenario& scenario, const Arm& arm, ArmReport& report) {
  report.name = arm.name;
  report.world_size = scenario.ranks;
  report.seed = scenario.seed;
  if (!arm.program.native) {
    report.probe = "python";
    return;
  }
  report.backend = arm.program.native->backend;
  report.dtype = arm.program.native->dtype;
}

// Gives `report` the judged fields and keeps those the runner has set.
void adopt(ArmReport& report, ArmReport judged) {
  judged.name = report.name;
  judged.world_size = report.world_size;
  judged.backend = report.backend;
  judged.dtype = report.dtype;
  judged.seed = report.seed;
  report = std::move(judged);
}

// Which of two worlds a job is judged by.
int severity_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::error:
      return 4;
    case Outcome::inconsistent:
      return 5;
    case Outcome::raised:
      return 3;
    case Outcome::inconclusive:
      return 2;
    case Outcome::consistent:
      return 1;
    case Outcome::skipped:
      return 0;
  }
  return 0;
}

std::string nccl_reason(const ReadyPacket& ready) {
  if (!ready.nccl) return "LibTorch here has no NCCL";
  if (!ready.cuda) return "no CUDA device";
  return "the native lab runs on Gloo only";
}

bool needs_nccl(const Scenario& scenario, const NativeProgram& program) {
  for (const std::string& need : scenario.needs) {
    if (need == "nccl" || need == "gpu") return true;
  }
  return program.backend == "nccl";
}

}  // namespace

ArmRunner::ArmRunner(const Host& host, const InterruptWatch& interrupt, ArmOptions options)
    : host_(host),
      interrupt_(interrupt),
      options_(std::move(options)),
      programs_(host, options_.python) {}

Zygote& ArmRunner::zygote() {
  if (zygote_) return *zygote_;
  if (!std::filesystem::exists(options_.rank_binary)) {
    throw InfrastructureError("there is no " + options_.rank_binary +
                              ": native scenarios need gradcheck-rank; build it with LibTorch "
                              "(scripts/setup), or name it in GRADCHECK_RANK");
  }
  zygote_ = std::make_unique<Zygote>(options_.rank_binary, DeadlineSeconds().spawn,
                                     interrupt_.descriptor());
  versions_ = {{"torch", zygote_->ready().torch}};
  return *zygote_;
}

std::optional<std::string> ArmRunner::reason_to_skip(const Scenario& scenario, const Arm& arm) {
  const std::string dtype = arm.program.native ? arm.program.native->dtype : "";
  const ExpectationContext context{scenario.ranks, dtype, options_.overridden, options_.fail_on};
  if (needs_agreement(arm.expect, context)) return "one rank: agreement cannot be tested";
  if (arm.program.command) {
    prepared_ = programs_.prepare(scenario, *arm.program.command);
    if (prepared_.reason_to_skip.empty()) return std::nullopt;
    return prepared_.reason_to_skip;
  }
  if (needs_nccl(scenario, *arm.program.native)) return nccl_reason(zygote().ready());
  return std::nullopt;
}

void ArmRunner::judge_native(const Scenario& scenario, const Arm& arm, const std::string& run_id,
                             ArmReport& report) {
  ArmEvidence evidence = run_native_arm(
      zygote(), {scenario, arm, run_id, host_.temporary_directory, interrupt_, options_.progress});
  adopt(report, judge({evidence.reader.table(), scenario.plan, evidence.payloads.views,
                       scenario.steps, scenario.micro_steps, true, options_.all_tensors,
                       std::nullopt, evidence.payloads.log_probs}));
  if (!evidence.reader.table().refused().empty()) blame_ourselves(report.headline, report);
  const auto steps = static_cast<std::size_t>(scenario.steps);
  const bool judged =
      report.outcome == Outcome::consistent || report.outcome == Outcome::inconsistent;
  if (judged && arm.program.native->roll_out && evidence.payloads.log_probs.size() < steps) {
    blame_ourselves("the roll-outs of some steps left no log-probs", report);
  }
  hold_against_earlier_arms(scenario, evidence.reader.table(), report);
}

// A job of several worlds is as good as the worst of them, which then speaks for it.
void ArmRunner::judge_command(const Scenario& scenario, const std::string& run_id,
                              ArmReport& report) {
  if (!options_.agent) throw InfrastructureError("the agent for Python jobs is missing");
  std::vector<pid_t> spared;
  if (zygote_) spared.push_back(zygote_->pid());
  const JobEvidence evidence = run_job(
      {prepared_.job, *options_.agent, run_id, host_.temporary_directory, interrupt_, spared, {}});
  std::vector<ArmReport> worlds =
      judge_job(evidence, prepared_.job, scenario.plan, options_.all_tensors);
  const auto worst =
      std::max_element(worlds.begin(), worlds.end(), [](const ArmReport& a, const ArmReport& b) {
        return severity_of(a.outcome) < severity_of(b.outcome);
      });
  if (worlds.size() > 1) {
    worst->notes.push_back(std::to_string(worlds.size()) +
                           " worlds of ranks; the worst one is shown");
  }
  worst->name = report.name;
  report = std::move(*worst);
  if (versions_.empty()) versions_ = versions_of(evidence);
  if (!evidence.worlds->problems().empty()) blame_ourselves(report.headline, report);
  const bool ended = report.outcome == Outcome::raised || report.outcome == Outcome::error;
  if (!ended) bad_exit_ = bad_exit(evidence);
}

void ArmRunner::hold_against_earlier_arms(const Scenario& scenario, const EvidenceTable& table,
                                          ArmReport& report) {
  if (std::exchange(batches_scenario_, scenario.name) != scenario.name) batches_.clear();
  BatchDigests batches = batches_of(table);
  if (const auto difference = batches_differ(batches_, batches)) {
    blame_ourselves(*difference + ": arms of a scenario must run on the same data", report);
  }
  batches_.merge(batches);
}

// What went wrong on our side says nothing about the program: no expectation can be met by it.
void ArmRunner::blame_ourselves(const std::string& sentence, ArmReport& report) {
  report.outcome = Outcome::error;
  report.headline = sentence;
  tool_failed_ = true;
}

ArmReport ArmRunner::run(const Scenario& scenario, const Arm& arm, const std::string& run_id) {
  const auto start = Clock::now();
  ArmReport report;
  describe_program(scenario, arm, report);
  const std::string arm_id = run_id + "/" + scenario.name + "/" + arm.name;
  tool_failed_ = false;
  bad_exit_.clear();
  try {
    if (const auto reason = reason_to_skip(scenario, arm)) {
      report.outcome = Outcome::skipped;
      report.headline = "skipped: " + *reason;
    } else if (arm.program.native) {
      judge_native(scenario, arm, arm_id, report);
    } else {
      judge_command(scenario, arm_id, report);
    }
  } catch (const std::exception& error) {
    interrupt_.throw_if_any();
    zygote_.reset();  // the next arm starts afresh
    blame_ourselves(error.what(), report);
  }
  const std::string dtype = arm.program.native ? arm.program.native->dtype : "";
  apply_expectation(report, arm.expect,
                    {scenario.ranks, dtype, options_.overridden, options_.fail_on});
  hold_against_exit(report, bad_exit_);
  if (tool_failed_) {
    report.verdict = Verdict::error;
    report.reason = report.headline;
  }
  report.duration_s = seconds_since(start);
  return report;
}

}  // namespace gradcheck
