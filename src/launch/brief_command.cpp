// SPDX-License-Identifier: Apache-2.0
#include "launch/brief_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launch/clock.h"

namespace gradcheck {
namespace {

constexpr std::size_t kMostOutput = std::size_t{64} * 1024;

void read_some(Descriptor& from, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return from.reset();
  if (text.size() < kMostOutput) text.append(buffer.data(), static_cast<std::size_t>(got));
}

}  // namespace

BriefResult run_briefly(CommandSpec spec, double timeout_s) {
  spec.pipe_output = true;
  spec.close_input = true;
  StartedCommand started = start_command(spec);
  const auto limit = after(timeout_s);
  BriefResult result;
  while ((started.out.is_open() || started.errors.is_open()) && Clock::now() < limit) {
    std::array<pollfd, 2> waiting = {
        {{started.out.get(), POLLIN, 0}, {started.errors.get(), POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), milliseconds_until(limit)) <= 0) continue;
    if (waiting[0].revents != 0) read_some(started.out, result.out);
    if (waiting[1].revents != 0) read_some(started.errors, result.errors);
  }
  result.in_time = !started.out.is_open() && !started.errors.is_open();
  if (!result.in_time) ::kill(started.pid, SIGKILL);
  int status = 0;
  ::waitpid(started.pid, &status, 0);
  result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace gradcheck
