// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "model/errors.h"

namespace gradcheck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFlushBytes = std::size_t{64} * 1024;
constexpr std::size_t kMaxIncoming = std::size_t{1024} * 1024;  // of a line from the front

[[noreturn]] void fail(const std::string& what) {
  throw InfrastructureError("evidence channel: " + what);
}

[[noreturn]] void fail_to_send(int error) {
  fail(std::string("cannot send: ") + std::strerror(error));
}

bool is_socket(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

Clock::time_point after(double seconds) {
  const std::chrono::duration<double> bounded(seconds > 0 ? std::min(seconds, 1e6) : 0.0);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(bounded);
}

// False when the deadline has passed. A closed peer counts as ready: the next call tells.
bool wait_for(int descriptor, short events, Clock::time_point deadline) {
  constexpr std::chrono::milliseconds kLongest(60'000);  // poll() takes an int
  for (;;) {
    const Clock::duration left = deadline - Clock::now();
    if (left <= Clock::duration::zero()) return false;
    const auto wait = std::min(std::chrono::ceil<std::chrono::milliseconds>(left), kLongest);
    pollfd poll_for{descriptor, events, 0};
    const int ready = ::poll(&poll_for, 1, static_cast<int>(wait.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail("poll failed");
  }
}

// MSG_NOSIGNAL: a front that has gone must not end a user's job by SIGPIPE.
void send_all(int descriptor, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(descriptor, POLLOUT, deadline)) fail("the front does not read");
    } else if (errno != EINTR) {
      fail_to_send(errno);
    }
  }
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail_to_send(errno);
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Channel::Channel(int descriptor, double send_timeout_s)
    : descriptor_(descriptor), is_socket_(is_socket(descriptor)), send_timeout_s_(send_timeout_s) {}

Channel::~Channel() { ::close(descriptor_); }

void Channel::append(const std::string& line) {
  out_ += line;
  out_ += '\n';
  ++sequence_;
  if (out_.size() >= kFlushBytes) flush();
}

void Channel::send_object(std::string_view json) {
  const std::string_view rest = json.substr(1);
  const bool is_empty = rest.find_first_not_of(" \t") == rest.find('}');
  append(R"({"seq":)" + std::to_string(sequence_) + (is_empty ? "" : ",") + std::string(rest));
}

void Channel::send_bye(int status) {
  send(ByeRecord{status, sequence_});
  flush();
}

void Channel::flush() {
  if (out_.empty()) return;
  if (is_socket_) {
    const auto deadline = send_timeout_s_ > 0 ? after(send_timeout_s_) : Clock::time_point::max();
    send_all(descriptor_, out_, deadline);
  } else {
    write_all(descriptor_, out_);
  }
  out_.clear();
}

std::optional<std::string> Channel::take_line() {
  const auto end = in_.find('\n');
  if (end == std::string::npos) {
    if (in_.size() > kMaxIncoming) fail("the front sends an endless line");
    return std::nullopt;
  }
  std::string line = in_.substr(0, end);
  in_.erase(0, end + 1);
  return line;
}

Channel::Arrival Channel::read_more(Clock::time_point deadline) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      in_.append(buffer.data(), static_cast<std::size_t>(got));
      return Arrival::bytes;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return Arrival::gone;
    if (!wait_for(descriptor_, POLLIN, deadline)) return Arrival::nothing;
  }
}

std::optional<std::string> Channel::receive(double timeout_s) {
  flush();
  const auto deadline = after(timeout_s);
  for (;;) {
    if (auto line = take_line()) return line;
    const Arrival arrival = read_more(deadline);
    if (arrival == Arrival::gone) return std::nullopt;
    if (arrival == Arrival::nothing) fail("no answer from the front in time");
  }
}

std::optional<std::string> Channel::poll(double timeout_s) {
  flush();
  if (!is_socket_) return std::nullopt;
  const auto deadline = after(timeout_s);
  for (;;) {
    if (auto line = take_line()) return line;
    const Arrival arrival = read_more(deadline);
    if (arrival == Arrival::gone) fail("the front has gone");
    if (arrival == Arrival::nothing) return std::nullopt;
  }
}

}  // namespace gradcheck
