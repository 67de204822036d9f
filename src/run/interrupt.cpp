// SPDX-License-Identifier: Apache-2.0
#include "run/interrupt.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gradcheck {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  const sigset_t set = watched();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

InterruptWatch::~InterruptWatch() {
  const sigset_t set = watched();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void InterruptWatch::throw_if_any() const {
  signalfd_siginfo info{};
  const ssize_t got = ::read(descriptor_.get(), &info, sizeof info);
  if (got == sizeof info) throw Interrupted{static_cast<int>(info.ssi_signo)};
}

}  // namespace gradcheck
