// SPDX-License-Identifier: Apache-2.0
#include "launch/processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "launch/clock.h"

namespace gradcheck {
namespace {

constexpr double kKillSeconds = 2;
constexpr int kPollMilliseconds = 10;

std::optional<pid_t> number_from(const std::string& text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Status {
  pid_t parent = 0;
  char state = ' ';
};

// proc(5): "pid (name) state ppid …", where the name may hold anything but ends at the last ')'.
std::optional<Status> status_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text);
  const auto end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(end + 1));
  Status status;
  if (!(rest >> status.state >> status.parent)) return std::nullopt;
  return status;
}

// Children by parent, of every process that still runs.
std::map<pid_t, std::vector<pid_t>> children_by_parent() {
  std::map<pid_t, std::vector<pid_t>> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = number_from(entry->path().filename().string());
    if (!pid) continue;
    const auto status = status_of(entry->path());
    if (status && status->state != 'Z') children[status->parent].push_back(*pid);
  }
  return children;
}

void signal_all(const std::vector<pid_t>& pids, int signal) {
  for (const pid_t pid : pids) {
    if (pid > 1) ::kill(pid, signal);
  }
}

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<pid_t> descendants(const std::vector<pid_t>& spared) {
  const auto children = children_by_parent();
  std::vector<pid_t> found;
  std::vector<pid_t> open = {::getpid()};
  while (!open.empty()) {
    const auto below = children.find(open.back());
    open.pop_back();
    if (below == children.end()) continue;
    for (const pid_t pid : below->second) {
      if (std::find(spared.begin(), spared.end(), pid) != spared.end()) continue;
      found.push_back(pid);
      open.push_back(pid);
    }
  }
  return found;
}

void end_descendants(double grace_s, const std::vector<pid_t>& spared) {
  signal_all(descendants(spared), SIGTERM);
  const auto grace = after(grace_s);
  const auto limit = after(grace_s + kKillSeconds);
  for (;;) {
    const std::vector<pid_t> left = descendants(spared);
    if (left.empty() || Clock::now() > limit) return;
    if (Clock::now() > grace) signal_all(left, SIGKILL);
    ::poll(nullptr, 0, kPollMilliseconds);
  }
}

}  // namespace gradcheck
