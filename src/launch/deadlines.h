// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/clock.h"

namespace gradcheck {

// How long each part of a native arm may take, in seconds (design.md §3). Derived from the arm's
// total, so that --timeout stretches or shortens all of them.
struct DeadlineSeconds {
  double total = 120;
  double spawn = 10;
  double rendezvous = 30;
  double step = 30;
  double bye = 5;
  double aftermath = 5;  // what survivors get once a rank has ended badly
};

DeadlineSeconds deadlines_for(double total_s);

// One deadline a rank, with a name for people. At most one can be pending for each.
class Deadlines {
 public:
  Deadlines(int ranks, double total_s);

  void set(int rank, const std::string& name, double seconds);
  void clear(int rank);  // the rank waits for others
  // From now on no deadline is later than `seconds` from now, and all bear this name: those pending
  // and those set later.
  void hurry(const std::string& name, double seconds);

  Clock::time_point next() const;  // the earliest of all
  bool total_passed() const { return Clock::now() >= total_; }
  const std::string& total_name() const { return total_name_; }
  // Ranks whose deadline has passed, or will within `soon_s`; ascending.
  std::vector<int> passed(double soon_s = 0) const;
  const std::string& name(int rank) const { return pending_[static_cast<std::size_t>(rank)].name; }

 private:
  struct Pending {
    std::string name;
    Clock::time_point at = Clock::time_point::max();
  };

  std::optional<Pending> hurried_;
  std::string total_name_;
  Clock::time_point total_;
  std::vector<Pending> pending_;
};

}  // namespace gradcheck
