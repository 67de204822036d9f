// SPDX-License-Identifier: Apache-2.0
#include "run/run_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "model/errors.h"

namespace gradcheck {

RunDirectory::RunDirectory(const std::string& parent) : path_(parent + "/gradcheck-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw InfrastructureError("cannot make a run directory in " + parent + ": " +
                              std::strerror(errno) + "; set TMPDIR to a writable folder");
  }
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gradcheck
