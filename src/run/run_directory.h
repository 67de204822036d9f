// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace gradcheck {

// A fresh directory of mode 0700 that is removed with everything in it when the object goes.
// Errors: InfrastructureError when it cannot be made.
class RunDirectory {
 public:
  explicit RunDirectory(const std::string& parent);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gradcheck
