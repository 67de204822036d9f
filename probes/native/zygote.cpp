// SPDX-License-Identifier: Apache-2.0
#include "probes/native/zygote.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "model/errors.h"
#include "model/json/zygote.h"
#include "probes/native/child.h"
#include "probes/native/versions.h"

namespace gradcheck::native {
namespace {

int watch_children() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) throw InfrastructureError("zygote: no signalfd");
  return descriptor;
}

void close_all(const std::vector<int>& descriptors) {
  for (const int descriptor : descriptors) close(descriptor);
}

// Empty if the packet and its descriptors can be carried out.
std::string refusal(const ForkPacket& packet, const Received& received) {
  if (packet.ranks < 1 || packet.ranks > kMaxForkRanks) {
    return "ranks must be 1 to " + std::to_string(kMaxForkRanks);
  }
  if (received.truncated) return "descriptors were lost on the way";
  const auto expected = 2 * static_cast<std::size_t>(packet.ranks);
  if (received.descriptors.size() == expected) return "";
  return "fork needs " + std::to_string(expected) + " descriptors, got " +
         std::to_string(received.descriptors.size());
}

ExitPacket exit_packet(int rank, pid_t pid, int status) {
  return {rank, pid, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace

Zygote::Zygote(int control) : control_(control), child_signals_(watch_children()) {}

Zygote::~Zygote() {
  kill_ranks();
  close(child_signals_);
}

void Zygote::serve() {
  if (!send_packet(control_, ready_packet())) return;
  for (;;) {
    std::array<pollfd, 2> watched = {{{control_, POLLIN, 0}, {child_signals_, POLLIN, 0}}};
    if (poll(watched.data(), watched.size(), -1) < 0) {
      if (errno == EINTR) continue;
      throw InfrastructureError("zygote: poll failed");
    }
    if (watched[1].revents != 0 && !reap()) return;
    if (watched[0].revents != 0 && !on_packet()) return;
  }
}

bool Zygote::on_packet() {
  const auto received = receive_packet(control_);
  if (!received) return false;
  ZygotePacket answer;
  try {
    answer = fork_ranks(*received);
  } catch (const InfrastructureError& error) {
    answer = RefusedPacket{error.what()};
  }
  close_all(received->descriptors);
  return send_packet(control_, answer);
}

ZygotePacket Zygote::fork_ranks(const Received& received) {
  const ZygotePacket packet = packet_from_text(received.text);
  const auto* order = std::get_if<ForkPacket>(&packet);
  if (order == nullptr) return RefusedPacket{"only fork is understood"};
  if (std::string why = refusal(*order, received); !why.empty()) return RefusedPacket{why};
  StartedPacket started;
  const pid_t self = getpid();
  for (int rank = 0; rank < order->ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      become_rank(received.descriptors[static_cast<std::size_t>(rank)],
                  received.descriptors[static_cast<std::size_t>(rank + order->ranks)], self);
    }
    if (pid < 0) return abandon(started, std::strerror(errno));
    ranks_[pid] = rank;
    started.pids.push_back(pid);
  }
  return started;
}

// A world that lacks ranks is of no use: those that were started are ended, and not reported.
RefusedPacket Zygote::abandon(const StartedPacket& started, const std::string& why) {
  for (const std::int64_t pid : started.pids) {
    kill(static_cast<pid_t>(pid), SIGKILL);
    waitpid(static_cast<pid_t>(pid), nullptr, 0);
    ranks_.erase(static_cast<pid_t>(pid));
  }
  return {"fork: " + why};
}

bool Zygote::reap() {
  signalfd_siginfo ignored;
  while (read(child_signals_, &ignored, sizeof ignored) > 0) {
  }
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto found = ranks_.find(pid);
    if (found == ranks_.end()) continue;
    const ExitPacket packet = exit_packet(found->second, pid, status);
    ranks_.erase(found);
    if (!send_packet(control_, packet)) return false;
  }
  return true;
}

void Zygote::kill_ranks() {
  for (const auto& [pid, rank] : ranks_) kill(pid, SIGKILL);
  for (const auto& [pid, rank] : ranks_) waitpid(pid, nullptr, 0);
  ranks_.clear();
}

}  // namespace gradcheck::native
