// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "launch/output_tail.h"

namespace gradcheck {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
constexpr long kSendSeconds = 5;

}  // namespace

RankLoop::RankLoop(Zygote& zygote, int ranks, RankEvents events)
    : zygote_(zygote), events_(std::move(events)) {
  ForkedRanks forked = zygote.fork_ranks(ranks);
  for (std::size_t rank = 0; rank < forked.pids.size(); ++rank) {
    const timeval limit{kSendSeconds, 0};
    ::setsockopt(forked.channels[rank].get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    RankState state;
    state.pid = forked.pids[rank];
    state.channel = std::move(forked.channels[rank]);
    state.errors = std::move(forked.errors[rank]);
    ranks_.push_back(std::move(state));
  }
}

bool RankLoop::turn(Clock::time_point until, int interrupt) {
  std::vector<pollfd> waiting;
  for (const RankState& state : ranks_) {
    waiting.push_back({state.channel.get(), POLLIN, 0});  // −1 is ignored by poll
    waiting.push_back({state.errors.get(), POLLIN, 0});
  }
  waiting.push_back({zygote_.control(), POLLIN, 0});
  waiting.push_back({interrupt, POLLIN, 0});
  if (::poll(waiting.data(), waiting.size(), milliseconds_until(until)) <= 0) return false;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (waiting[2 * rank].revents != 0) read_channel(static_cast<int>(rank));
    if (waiting[2 * rank + 1].revents != 0) read_errors(ranks_[rank]);
  }
  if (waiting[waiting.size() - 2].revents != 0) read_exits();
  return waiting.back().revents != 0;
}

void RankLoop::read_channel(int rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  std::vector<char> buffer(kReadBytes);
  const ssize_t got = ::recv(state.channel.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    events_.closed(rank, state.lines.rest());
    state.channel.reset();
    return;
  }
  state.lines.feed({buffer.data(), static_cast<std::size_t>(got)},
                   [&](std::string_view line) { events_.line(rank, line); });
}

void RankLoop::read_errors(RankState& state) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(state.errors.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    state.errors.reset();
    return;
  }
  keep_tail(state.stderr_tail, {buffer.data(), static_cast<std::size_t>(got)});
}

void RankLoop::read_exits() {
  while (const std::optional<ExitPacket> exit = zygote_.take_exit()) {
    const auto known = std::find_if(ranks_.begin(), ranks_.end(),
                                    [&](const RankState& state) { return state.pid == exit->pid; });
    if (known == ranks_.end()) continue;  // a straggler of the arm before
    known->exited = true;
    ExitPacket ended = *exit;
    ended.rank = static_cast<int>(known - ranks_.begin());
    events_.exited(ended);
  }
}

void RankLoop::send(int rank, const std::string& line) {
  const std::string text = line + '\n';
  std::string_view rest = text;
  const int channel = ranks_[static_cast<std::size_t>(rank)].channel.get();
  while (channel >= 0 && !rest.empty()) {
    const ssize_t sent = ::send(channel, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RankLoop::kill(int rank) {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (!state.exited) ::kill(static_cast<pid_t>(state.pid), SIGKILL);
}

bool RankLoop::all_exited() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const RankState& state) { return state.exited; });
}

bool RankLoop::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& state) {
    return state.exited && !state.channel.is_open() && !state.errors.is_open();
  });
}

}  // namespace gradcheck
