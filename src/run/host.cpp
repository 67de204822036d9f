// SPDX-License-Identifier: Apache-2.0
#include "run/host.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>

namespace gradcheck {
namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string random_id() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::random_device device;
  std::string id;
  for (int i = 0; i < 16; ++i) id += kDigits[device() & 15];
  return id;
}

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string executable_directory() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.parent_path().string();
}

int columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Host real_host() {
  Host host;
  host.unix_seconds = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
  host.env = environment;
  host.random_id = random_id;
  host.name = machine_name();
  host.executable_directory = executable_directory();
  host.temporary_directory = environment("TMPDIR").value_or("");
  if (host.temporary_directory.empty()) host.temporary_directory = "/tmp";
  std::error_code error;  // a job may change its folder before it looks there
  const auto whole = std::filesystem::absolute(host.temporary_directory, error);
  if (!error) host.temporary_directory = whole.string();
  host.stdout_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  host.stderr_is_terminal = ::isatty(STDERR_FILENO) == 1;
  host.stdout_columns = columns();
  return host;
}

}  // namespace gradcheck
