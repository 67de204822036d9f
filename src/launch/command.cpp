// SPDX-License-Identifier: Apache-2.0
#include "launch/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "model/errors.h"

extern char** environ;

namespace gradcheck {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw InfrastructureError(what + ": " + std::strerror(error));
}

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// "NAME=value" of the whole environment, ours first, so that the command's own entries win.
std::vector<std::string> environment_of(const CommandSpec& spec) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto overridden = [&](const auto& pair) {
      return text.starts_with(pair.first) && text.substr(pair.first.size()).starts_with('=');
    };
    bool kept = true;
    for (const auto& pair : spec.environment) kept &= !overridden(pair);
    if (kept) entries.emplace_back(text);
  }
  for (const auto& [name, value] : spec.environment) entries.push_back(name + "=" + value);
  return entries;
}

// Where execve(2) finds the command: looked up on the PATH that it will have, not on ours.
std::string program_path(const std::string& name, const std::vector<std::string>& environment) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view rest;
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) rest = std::string_view(entry).substr(5);
  }
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string path = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return name;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Everything the child needs, made before the fork: between fork and exec nothing may allocate.
struct Prepared {
  std::vector<std::string> argv, environment;
  std::vector<char*> argv_pointers, environment_pointers;
  std::string program, directory;
  int input = -1, out = -1, errors = -1;  // −1: inherited
  int report = -1;                        // where errno goes if exec fails
  pid_t parent = 0;
};

void default_signals() {
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void report_and_leave(int descriptor) {
  const int error = errno;
  const ssize_t ignored = ::write(descriptor, &error, sizeof error);
  static_cast<void>(ignored);
  ::_exit(127);
}

[[noreturn]] void become(const Prepared& prepared) {
  // The signal follows the parent's thread; a parent that died before it was asked for sends none.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != prepared.parent) ::_exit(127);
  default_signals();
  if (prepared.input >= 0) ::dup2(prepared.input, STDIN_FILENO);
  if (prepared.out >= 0) ::dup2(prepared.out, STDOUT_FILENO);
  if (prepared.errors >= 0) ::dup2(prepared.errors, STDERR_FILENO);
  const bool moves = !prepared.directory.empty();
  if (moves && ::chdir(prepared.directory.c_str()) != 0) report_and_leave(prepared.report);
  ::execve(prepared.program.c_str(), prepared.argv_pointers.data(),
           prepared.environment_pointers.data());
  report_and_leave(prepared.report);
}

// Empty pipe: exec closed it, the command runs.
void check_started(const Descriptor& report, const CommandSpec& spec, pid_t pid) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return;
  ::waitpid(pid, nullptr, 0);
  const bool in_folder = !spec.directory.empty();
  fail("cannot start " + spec.argv.front() + (in_folder ? " in " + spec.directory : ""), error);
}

}  // namespace

StartedCommand start_command(const CommandSpec& spec) {
  Prepared prepared;
  prepared.argv = spec.argv;
  prepared.environment = environment_of(spec);
  prepared.argv_pointers = pointers_to(prepared.argv);
  prepared.environment_pointers = pointers_to(prepared.environment);
  prepared.program = program_path(spec.argv.front(), prepared.environment);
  prepared.directory = spec.directory;
  prepared.parent = ::getpid();
  StartedCommand started;
  Pipe out, errors;
  if (spec.pipe_output) {
    out = make_pipe();
    prepared.out = out.write_end.get();
  }
  if (spec.pipe_output || spec.pipe_errors) {
    errors = make_pipe();
    prepared.errors = errors.write_end.get();
  }
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (spec.close_input) prepared.input = nothing.get();
  if (spec.out_to_errors && !spec.pipe_output) prepared.out = STDERR_FILENO;
  Pipe report = make_pipe();
  prepared.report = report.write_end.get();
  started.pid = ::fork();
  if (started.pid < 0) fail("fork", errno);
  if (started.pid == 0) become(prepared);
  report.write_end.reset();
  check_started(report.read_end, spec, started.pid);
  started.handle = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0)));
  started.out = std::move(out.read_end);
  started.errors = std::move(errors.read_end);
  return started;
}

}  // namespace gradcheck
