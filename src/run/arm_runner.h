// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launch/zygote.h"
#include "model/finding.h"
#include "model/report.h"
#include "model/scenario.h"
#include "run/batches.h"
#include "run/command_program.h"
#include "run/host.h"
#include "run/interrupt.h"
#include "run/reference_weights.h"

namespace gradcheck {

// What the command line decides about every arm.
struct ArmOptions {
  bool overridden = false;  // the program is not the scenario's own
  Severity fail_on = Severity::error;
  bool all_tensors = false;
  std::string rank_binary;          // gradcheck-rank
  std::optional<AgentFiles> agent;  // for scenarios with a command
  std::string python;               // --python
  std::function<void(const std::string&)> progress;
};

// Runs arms one after the other and judges each. Keeps one zygote for all native arms and starts a
// new one if it dies. Main thread only.
class ArmRunner {
 public:
  ArmRunner(const Host& host, const InterruptWatch& interrupt, ArmOptions options);

  // Never throws for what an arm does: it becomes the arm's outcome. Errors: Interrupted.
  ArmReport run(const Scenario& scenario, const Arm& arm, const std::string& run_id);

  // Component versions, known once a native arm has started: {"torch", "2.13.0"}.
  const Pairs& versions() const { return versions_; }

 private:
  std::optional<std::string> reason_to_skip(const Scenario& scenario, const Arm& arm);
  void judge_native(const Scenario& scenario, const Arm& arm, const std::string& run_id,
                    ArmReport& report);
  void judge_command(const Scenario& scenario, const std::string& run_id, ArmReport& report);
  void hold_against_earlier_arms(const Scenario& scenario, const Arm& arm,
                                 const EvidenceTable& table, ArmReport& report);
  void blame_ourselves(const std::string& sentence, ArmReport& report);
  Zygote& zygote();

  const Host& host_;
  const InterruptWatch& interrupt_;
  ArmOptions options_;
  CommandPrograms programs_;
  CommandPrograms::Prepared prepared_;  // of the command arm that is running
  std::string bad_exit_;                // of its job
  std::unique_ptr<Zygote> zygote_;
  Pairs versions_;
  bool tool_failed_ = false;      // in the arm that is running
  std::string batches_scenario_;  // whose arms `batches_` belongs to
  BatchDigests batches_;
  std::map<std::string, FinalWeights> weights_;  // of its arms, by name
};

}  // namespace gradcheck
