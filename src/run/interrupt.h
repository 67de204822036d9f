// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "launch/descriptor.h"

namespace gradcheck {

// A signal asked the run to end. main() turns it into exit code 128 + signal, after everything on
// the way up has ended its processes and removed its files.
struct Interrupted {
  int signal = 0;
};

// Turns SIGINT, SIGTERM and SIGHUP into a readable descriptor for as long as the object lives.
// Main thread only.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  int descriptor() const { return descriptor_.get(); }
  void throw_if_any() const;  // Interrupted

 private:
  Descriptor descriptor_;
};

}  // namespace gradcheck
