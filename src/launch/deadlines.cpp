// SPDX-License-Identifier: Apache-2.0
#include "launch/deadlines.h"

#include <algorithm>
#include <cstdio>

namespace gradcheck {
namespace {

std::string with_seconds(const std::string& name, double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, " (%g s)", seconds);
  return name + text;
}

}  // namespace

DeadlineSeconds deadlines_for(double total_s) {
  DeadlineSeconds seconds;
  seconds.total = total_s;
  // A quarter of the total is the contract's 30 s of 120 s; where the total is short, more of it,
  // so that a busy machine alone does not pass it. Always below the total, which names no rank.
  seconds.step = std::max(total_s / 4, std::min(total_s * 0.75, 5.0));
  seconds.rendezvous = seconds.step;
  seconds.spawn = std::min(total_s, 10.0);
  return seconds;
}

Deadlines::Deadlines(int ranks, double total_s)
    : total_name_(with_seconds("arm total", total_s)),
      total_(after(total_s)),
      pending_(static_cast<std::size_t>(ranks)) {}

void Deadlines::set(int rank, const std::string& name, double seconds) {
  Pending& pending = pending_[static_cast<std::size_t>(rank)];
  pending = {with_seconds(name, seconds), after(seconds)};
  if (hurried_) pending = {hurried_->name, std::min(pending.at, hurried_->at)};
}

void Deadlines::clear(int rank) { pending_[static_cast<std::size_t>(rank)] = {}; }

void Deadlines::hurry(const std::string& name, double seconds) {
  hurried_ = {with_seconds(name, seconds), after(seconds)};
  for (Pending& pending : pending_) {
    const bool is_pending = pending.at != Clock::time_point::max();
    if (is_pending) pending = {hurried_->name, std::min(pending.at, hurried_->at)};
  }
}

Clock::time_point Deadlines::next() const {
  auto earliest = total_;
  for (const Pending& pending : pending_) earliest = std::min(earliest, pending.at);
  return earliest;
}

std::vector<int> Deadlines::passed(double soon_s) const {
  const auto now = after(soon_s);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < pending_.size(); ++rank) {
    if (now >= pending_[rank].at) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace gradcheck
