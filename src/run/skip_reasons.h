// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/scenario.h"
#include "run/command_program.h"
#include "run/host.h"

namespace gradcheck {

// Whether a scenario or one of its arms asks for NCCL or a GPU.
bool needs_nccl(const Scenario& scenario, const NativeProgram& program);

// What keeps scenarios from running here, found out without running any: a missing gradcheck-rank,
// environment or package. Remembers what it found out about interpreters.
class SkipReasons {
 public:
  // `python`: of --python; `rank_binary`: where gradcheck-rank would be.
  SkipReasons(const Host& host, std::string python, std::string rank_binary);

  std::string of(const Scenario& scenario);  // empty: every arm can run

 private:
  std::string of(const Scenario& scenario, const Arm& arm);

  CommandPrograms programs_;
  std::string rank_binary_;
};

}  // namespace gradcheck
