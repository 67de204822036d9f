// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>

#include "model/scenario.h"
#include "run/host.h"
#include "run/job_arm.h"

namespace gradcheck {

// Turns a scenario's `command` into a job: which interpreter `python` stands for, whether that has
// the packages the scenario requires, where the command runs. Remembers what it found out about
// interpreters.
class CommandPrograms {
 public:
  // `python`: of --python; empty: GRADCHECK_PYTHON, else `python3` on PATH.
  CommandPrograms(const Host& host, std::string python) : host_(host), python_(std::move(python)) {}

  struct Prepared {
    JobSpec job;
    std::string reason_to_skip;  // empty: it can run
  };
  // Errors: InfrastructureError where the interpreter does not run at all.
  Prepared prepare(const Scenario& scenario, const CommandProgram& program);

 private:
  std::string interpreter_for(const Scenario& scenario, const CommandProgram& program) const;
  std::string missing_packages(const std::string& python, const CommandProgram& program);

  const Host& host_;
  std::string python_;
  std::map<std::string, std::string> missing_;  // by interpreter and requirements
};

}  // namespace gradcheck
