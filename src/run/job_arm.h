// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/job_loop.h"
#include "run/interrupt.h"
#include "run/job_worlds.h"
#include "run/payloads.h"

namespace gradcheck {

// A user's command and how it is to be watched.
struct JobSpec {
  std::vector<std::string> argv;
  std::string directory;     // working directory; empty: ours
  int ranks = 0;             // copies to start, each with its rank's variables; 0: one, as it is
  std::int64_t every = 100;  // steps 0, 1, 2 and then every so many are checked
  std::int64_t steps = 0;    // checked steps after which checking ends; 0: no end
  bool stop_after_steps = false;   // then end the job too
  bool exact = false;              // ranks keep locals too and wait for the front
  double timeout_s = 0;            // of the whole job; 0: none
  std::string evidence_directory;  // ranks write there instead of to the socket
  std::string keep_directory;      // what the front received is left there
  bool quiet = false;              // the job's output is kept and not shown
  bool output_to_stderr = false;   // stdout belongs to a report
  std::string path_prefix;         // a folder that goes before PATH; empty: none
};

// Where the agent lies on this machine.
struct AgentFiles {
  std::string site;     // folder that goes on PYTHONPATH
  std::string library;  // libgradcheck_capture.so
};

struct JobInput {
  const JobSpec& spec;
  const AgentFiles& agent;
  std::string run_id;
  std::string parent_directory;  // the run directory is made in it
  const InterruptWatch& interrupt;
  std::vector<pid_t> spared;  // children of this process that are no part of the job
  // A line that the job wrote, with its rank's prefix where there is one; empty with `quiet`.
  std::function<void(Stream, const std::string&)> show;
};

// What the agent's marks in the run directory say about processes that never announced themselves.
struct SeenProcesses {
  int python = 0;   // loaded the agent
  int torch = 0;    // imported torch
  int wrapped = 0;  // opened a channel, or tried to
  int helpers = 0;  // trained in a process that a rank started, with the rank's variables
  int forked = 0;   // ran backwards in a process that was forked from a rank
};

struct JobEvidence {
  std::unique_ptr<JobWorlds> worlds;
  std::vector<Payloads> payloads;        // one a world
  std::vector<CommandExit> exits;        // one a command
  std::vector<std::string> last_errors;  // the last lines each command wrote to stderr
  SeenProcesses seen;
  bool stopped = false;  // ended by us because --steps were through
  std::string deadline;  // the one that ended the job; empty: none
};

// Starts the job, passes its output on, gathers the evidence of all its ranks and ends every
// process that is left, whatever happens. What the job does wrong is evidence, not an error.
// Errors: InfrastructureError when it cannot be started; Interrupted.
JobEvidence run_job(const JobInput& input);

}  // namespace gradcheck
