// SPDX-License-Identifier: Apache-2.0
#include "run/job_commands.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "launch/descriptor.h"
#include "model/errors.h"
#include "model/json/job.h"

namespace gradcheck {
namespace {

constexpr std::uint64_t kKeepBytes = std::uint64_t{256} << 20;  // evidence.md, "Jobs never wait"

// Free at this moment; the job binds it a little later.
int free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (!socket.is_open() || ::bind(socket.get(), plain, size) != 0 ||
      ::getsockname(socket.get(), plain, &size) != 0) {
    throw InfrastructureError(std::string("no free port: ") + std::strerror(errno));
  }
  return ntohs(address.sin_port);
}

// `folder` before what the variable holds already.
std::string with_path(const std::string& folder, const char* variable) {
  const char* before = std::getenv(variable);
  return before == nullptr || *before == '\0' ? folder : folder + ":" + before;
}

std::string job_text(const JobInput& input, const std::string& run_directory) {
  JobVariables job;
  job.run = input.run_id;
  job.directory = run_directory;
  job.library = input.agent.library;
  job.every = input.spec.every;
  job.steps = input.spec.steps;
  job.exact = input.spec.exact;
  job.keep_bytes = kKeepBytes;
  if (input.spec.evidence_directory.empty()) {
    job.socket = run_directory + "/front.sock";
  } else {
    job.evidence = input.spec.evidence_directory;
  }
  return to_text(job);
}

void add_rank(CommandSpec& command, int rank, int ranks, int port) {
  const std::string number = std::to_string(rank), size = std::to_string(ranks);
  command.environment.insert(command.environment.end(), {{"RANK", number},
                                                         {"LOCAL_RANK", number},
                                                         {"WORLD_SIZE", size},
                                                         {"LOCAL_WORLD_SIZE", size},
                                                         {"MASTER_ADDR", "127.0.0.1"},
                                                         {"MASTER_PORT", std::to_string(port)}});
  // As torchrun does: N ranks with a thread for each core get in each other's way.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    command.environment.emplace_back("OMP_NUM_THREADS", "1");
  }
}

}  // namespace

std::vector<CommandSpec> commands_of(const JobInput& input, const std::string& run_directory) {
  CommandSpec command;
  command.argv = input.spec.argv;
  command.directory = input.spec.directory;
  command.environment = {{"PYTHONPATH", with_path(input.agent.site, "PYTHONPATH")},
                         {"GRADCHECK_JOB", job_text(input, run_directory)}};
  command.pipe_output = input.spec.ranks > 0 || input.spec.quiet;
  // Its last lines are for the report; a terminal shows them itself, and programs want one.
  command.pipe_errors = !command.pipe_output && ::isatty(STDERR_FILENO) == 0;
  command.out_to_errors = input.spec.output_to_stderr;
  command.close_input = command.pipe_output;
  if (!input.spec.path_prefix.empty()) {
    command.environment.emplace_back("PATH", with_path(input.spec.path_prefix, "PATH"));
  }
  if (input.spec.ranks == 0) return {command};
  std::vector<CommandSpec> commands;
  const int port = free_port();
  for (int rank = 0; rank < input.spec.ranks; ++rank) {
    add_rank(commands.emplace_back(command), rank, input.spec.ranks, port);
  }
  return commands;
}

}  // namespace gradcheck
