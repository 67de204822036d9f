// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>

namespace gradcheck::native {

// Adds up the wall time of the scopes it is started in; for scripts/bench, never for a verdict.
class Stopwatch {
 public:
  class Running {
   public:
    explicit Running(Stopwatch& watch) : watch_(watch) {}
    ~Running() { watch_.total_ += Clock::now() - start_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Stopwatch& watch_;
    std::chrono::steady_clock::time_point start_ = Clock::now();
  };

  Running run() { return Running(*this); }
  double seconds() const { return std::chrono::duration<double>(total_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::duration total_{};
};

}  // namespace gradcheck::native
