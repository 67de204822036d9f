// SPDX-License-Identifier: Apache-2.0
#include "probes/native/child.h"

#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "probes/native/rank_main.h"

namespace gradcheck::native {
namespace {

constexpr int kChannel = 3;
constexpr int kInternalError = 70;  // EX_SOFTWARE: the lab failed, not its program

void die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the call
}

void take_descriptors(int channel, int error) {
  dup2(error, STDERR_FILENO);
  dup2(error, STDOUT_FILENO);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  if (channel != kChannel) dup2(channel, kChannel);
  fcntl(kChannel, F_SETFD, FD_CLOEXEC);
  close_range(kChannel + 1, ~0U, 0);
}

void reset_signals() {
  for (const int number : {SIGCHLD, SIGINT, SIGTERM}) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);  // a peer that has gone is an exception, as in Python
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// What goes wrong is said in evidence; LibTorch's log would only repeat it on stderr.
void quiet_log() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
  c10::initLogging();
}

int run_rank() {
  try {
    return rank_main(kChannel);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gradcheck-rank: %s\n", error.what());
    return kInternalError;
  }
}

}  // namespace

void become_rank(int channel, int error, pid_t zygote) {
  die_with_parent(zygote);
  take_descriptors(channel, error);
  reset_signals();
  quiet_log();
  at::set_num_threads(1);
  _exit(run_rank());
}

}  // namespace gradcheck::native
