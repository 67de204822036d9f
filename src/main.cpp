// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "run/host.h"

namespace {

// A descriptor of ours must never take the place of a closed stdin, stdout or stderr. What is
// opened for reading only still makes writing fail, so a lost report is not silent.
void occupy_standard_descriptors() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) {
    descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is a report that could not be written
  return gradcheck::run_cli({argv, argv + argc}, gradcheck::real_host());
}
