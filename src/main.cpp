// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "run/host.h"

int main(int argc, char** argv) {
  return gradcheck::run_cli({argv, argv + argc}, gradcheck::real_host());
}
