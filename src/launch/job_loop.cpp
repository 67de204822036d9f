// SPDX-License-Identifier: Apache-2.0
#include "launch/job_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/errors.h"
#include "model/record.h"

namespace gradcheck {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
constexpr std::size_t kLongestOutputLine = std::size_t{16} * 1024;

Descriptor listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw InfrastructureError(path + " is too long for a socket; set TMPDIR to a shorter folder");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  if (!listener.is_open() || ::bind(listener.get(), plain, sizeof address) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw InfrastructureError("cannot listen at " + path + ": " + std::strerror(errno));
  }
  return listener;
}

CommandExit exit_from(int process, int wait_status) {
  CommandExit exit;
  exit.process = process;
  if (WIFSIGNALED(wait_status)) {
    exit.signal = WTERMSIG(wait_status);
  } else {
    exit.status = WEXITSTATUS(wait_status);
  }
  return exit;
}

}  // namespace

JobLoop::JobLoop(const std::string& socket_path, JobEvents events)
    : events_(std::move(events)), listener_(listen_at(socket_path)) {}

int JobLoop::start(const CommandSpec& spec) {
  processes_.push_back(
      {start_command(spec), LineBuffer(kLongestOutputLine), LineBuffer(kLongestOutputLine), false});
  return static_cast<int>(processes_.size()) - 1;
}

bool JobLoop::turn(Clock::time_point until, int interrupt) {
  std::vector<pollfd> waiting = {{interrupt, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  const std::size_t connections = connections_.size();
  const std::size_t processes = processes_.size();
  for (const Connection& connection : connections_) {
    waiting.push_back({connection.channel.get(), POLLIN, 0});  // −1 is ignored by poll
  }
  for (const Process& process : processes_) {
    waiting.push_back({process.command.out.get(), POLLIN, 0});
    waiting.push_back({process.command.errors.get(), POLLIN, 0});
    waiting.push_back({process.command.handle.get(), POLLIN, 0});
  }
  if (::poll(waiting.data(), waiting.size(), milliseconds_until(until)) <= 0) return false;
  const auto ready = [&](std::size_t at) { return waiting[at].revents != 0; };
  for (std::size_t i = 0; i < connections; ++i) {
    if (ready(2 + i)) read_connection(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < processes; ++i) {
    const std::size_t at = 2 + connections + 3 * i;
    if (ready(at)) read_output(static_cast<int>(i), Stream::out);
    if (ready(at + 1)) read_output(static_cast<int>(i), Stream::errors);
    if (ready(at + 2)) read_exit(static_cast<int>(i));
  }
  if (ready(1)) accept_all();
  return ready(0);
}

void JobLoop::accept_all() {
  for (;;) {
    Descriptor channel(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!channel.is_open()) return;
    connections_.push_back({std::move(channel), LineBuffer(kMaxLineBytes)});
  }
}

void JobLoop::read_connection(int number) {
  std::vector<char> buffer(kReadBytes);
  const int channel = connections_[static_cast<std::size_t>(number)].channel.get();
  const ssize_t got = ::recv(channel, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  Connection& connection = connections_[static_cast<std::size_t>(number)];
  if (got <= 0) {
    connection.channel.reset();
    events_.closed(number, connection.lines.rest());
    return;
  }
  connection.lines.feed({buffer.data(), static_cast<std::size_t>(got)},
                        [&](std::string_view line) { events_.line(number, line); });
}

void JobLoop::read_output(int number, Stream stream) {
  Process& process = processes_[static_cast<std::size_t>(number)];
  const bool is_out = stream == Stream::out;
  Descriptor& from = is_out ? process.command.out : process.command.errors;
  LineBuffer& lines = is_out ? process.out : process.errors;
  std::vector<char> buffer(kReadBytes / 4);
  const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    from.reset();
    if (!lines.rest().empty()) events_.output(number, stream, lines.rest());
    return;
  }
  lines.feed({buffer.data(), static_cast<std::size_t>(got)},
             [&](std::string_view line) { events_.output(number, stream, line); });
}

void JobLoop::read_exit(int number) {
  Process& process = processes_[static_cast<std::size_t>(number)];
  int status = 0;
  if (::waitpid(process.command.pid, &status, WNOHANG) == 0) return;
  process.exited = true;
  process.command.handle.reset();
  events_.exited(exit_from(number, status));
}

void JobLoop::send(int connection, const std::string& line) {
  const Descriptor& channel = connections_[static_cast<std::size_t>(connection)].channel;
  if (!channel.is_open()) return;
  const std::string text = line + '\n';
  const ssize_t ignored = ::send(channel.get(), text.data(), text.size(), MSG_NOSIGNAL);
  static_cast<void>(ignored);
}

bool JobLoop::all_exited() const { return std::ranges::all_of(processes_, &Process::exited); }

bool JobLoop::all_closed() const {
  return std::ranges::none_of(
      connections_, [](const Connection& connection) { return connection.channel.is_open(); });
}

bool JobLoop::outputs_closed() const {
  return std::ranges::none_of(processes_, [](const Process& process) {
    return process.command.out.is_open() || process.command.errors.is_open();
  });
}

}  // namespace gradcheck
