// SPDX-License-Identifier: Apache-2.0
#include "cli/agent_files.h"

#include <filesystem>

#include "model/errors.h"

namespace gradcheck {
namespace {

std::string first_existing(const std::vector<std::string>& paths, const std::string& what) {
  for (const std::string& path : paths) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return std::filesystem::absolute(path).string();
  }
  throw InfrastructureError(what + " is missing: " + paths.back());
}

}  // namespace

AgentFiles agent_files(const Host& host) {
  const std::string here = host.executable_directory;
  std::vector<std::string> sites = {here + "/../_site",  // the wheel
                                    here + "/../share/gradcheck/python/gradcheck/_site",
                                    GRADCHECK_PYTHON_DIR "/gradcheck/_site"};
  std::vector<std::string> libraries = {here + "/libgradcheck_capture.so",
                                        here + "/../lib/libgradcheck_capture.so"};
  if (const auto folder = host.env("GRADCHECK_AGENT")) sites = {*folder};
  if (const auto file = host.env("GRADCHECK_CAPTURE")) libraries = {*file};
  return {first_existing(sites, "the agent for Python jobs"),
          first_existing(libraries, "the agent's library")};
}

std::vector<std::string> with_python(std::vector<std::string> argv, const std::string& python) {
  if (python.empty()) return argv;
  if (!std::filesystem::exists(python)) {
    throw UsageError("--python " + python + ": there is no such file");
  }
  const bool named = argv.front() == "python" || argv.front() == "python3";
  if (named) argv.front() = std::filesystem::absolute(python).string();
  return argv;
}

}  // namespace gradcheck
