// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "model/errors.h"

namespace gradcheck {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{64} * 1024;

using Clock = std::chrono::steady_clock;

void send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      throw InfrastructureError(std::string("evidence channel: cannot send: ") +
                                std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void wait_readable(int descriptor, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll_for{descriptor, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&poll_for, 1, static_cast<int>(left)) : 0;
    if (ready > 0) return;
    if (ready == 0) throw InfrastructureError("evidence channel: no answer from the front in time");
    if (errno != EINTR) throw InfrastructureError("evidence channel: poll failed");
  }
}

}  // namespace

Channel::~Channel() { ::close(descriptor_); }

void Channel::append(const std::string& line) {
  out_ += line;
  out_ += '\n';
  ++sequence_;
  if (out_.size() >= kFlushBytes) flush();
}

void Channel::send_bye(int status) {
  send(ByeRecord{status, sequence_});
  flush();
}

void Channel::flush() {
  send_all(descriptor_, out_);
  out_.clear();
}

std::optional<std::string> Channel::receive(double timeout_s) {
  flush();
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(timeout_s));
  std::array<char, 4096> buffer;
  for (;;) {
    if (const auto end = in_.find('\n'); end != std::string::npos) {
      std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      return line;
    }
    wait_readable(descriptor_, deadline);
    const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
    if (got == 0) return std::nullopt;
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (got > 0) in_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace gradcheck
