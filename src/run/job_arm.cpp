// SPDX-License-Identifier: Apache-2.0
#include "run/job_arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "launch/output_tail.h"
#include "launch/processes.h"
#include "run/evidence_files.h"
#include "run/job_commands.h"
#include "run/run_directory.h"

namespace gradcheck {
namespace {

constexpr double kGraceSeconds = 2;       // between SIGTERM and SIGKILL
constexpr double kDrainSeconds = 2;       // for pipes that a forgotten child may hold open for ever
constexpr double kReapSeconds = 5;        // for commands whose processes have been ended
constexpr double kTurnSeconds = 0.5;      // how often deadlines that rest on evidence are looked at
constexpr double kAftermathSeconds = 10;  // for the others, once a rank has failed
constexpr double kExitSeconds = 20;       // for a rank that only has to leave (design.md §3)
constexpr double kLinger = 60;            // for all of them together
constexpr double kSilentSeconds = 600;    // without a record while others wait for one
constexpr std::uint64_t kPayloadBudget = std::uint64_t{1} << 30;  // bytes, a rank and step

class JobArm {
 public:
  explicit JobArm(const JobInput& input)
      : input_(input),
        directory_(input.parent_directory),
        loop_(directory_.path() + "/front.sock", events()) {
    std::filesystem::create_directory(directory_.path() + "/payload");
    evidence_.worlds = std::make_unique<JobWorlds>(
        JobWorlds::Settings{input.run_id, kPayloadBudget, input.spec.exact},
        [this](int connection, const std::string& line) { loop_.send(connection, line); });
  }

  JobEvidence run() {
    try {
      return run_to_the_end();
    } catch (...) {
      end_descendants(kGraceSeconds, input_.spared);  // nothing may outlive the run directory
      throw;
    }
  }

 private:
  JobEvents events() {
    return {[this](int connection, std::string_view line) { take_line(connection, line); },
            [this](int connection, std::string_view rest) {
              evidence_.worlds->take_close(connection, rest);
              last_change_ = Clock::now();
            },
            [this](int process, Stream stream, std::string_view line) {
              take_output(process, stream, line);
            },
            [this](const CommandExit& exit) { take_exit(exit); }};
  }

  JobEvidence run_to_the_end() {
    become_subreaper();
    const auto commands = commands_of(input_, directory_.path());
    evidence_.exits.resize(commands.size());
    evidence_.last_errors.resize(commands.size());
    if (input_.spec.timeout_s > 0) total_ = after(input_.spec.timeout_s);
    for (const CommandSpec& command : commands) loop_.start(command);
    while (!is_over()) {
      if (loop_.turn(std::min(total_, after(kTurnSeconds)), input_.interrupt.descriptor())) {
        input_.interrupt.throw_if_any();
      }
      if (!ended_) keep_deadlines();
    }
    drain();
    end_descendants(kGraceSeconds, input_.spared);
    record_ends();
    evidence_.seen = seen();
    if (!input_.spec.keep_directory.empty()) {
      keep_evidence(input_.spec.keep_directory, directory_.path(), *evidence_.worlds, kept_);
    }
    for (auto& world : evidence_.worlds->worlds()) {
      evidence_.payloads.push_back(open_payloads(directory_.path(), world->reader.table()));
      world->reader.table().finish();
    }
    return std::move(evidence_);
  }

  // Commands that have been ended are given a moment to be reaped.
  bool is_over() const { return loop_.all_exited() || (ended_ && Clock::now() > reap_limit_); }

  void take_line(int connection, std::string_view line) {
    if (!input_.spec.keep_directory.empty()) kept_[connection].append(line).push_back('\n');
    evidence_.worlds->take_line(connection, line);
    last_change_ = Clock::now();
  }

  void take_output(int process, Stream stream, std::string_view line) {
    if (stream == Stream::errors) {
      std::string& tail = evidence_.last_errors[static_cast<std::size_t>(process)];
      keep_tail(tail, line);
      keep_tail(tail, "\n");
    }
    if (input_.spec.quiet || !input_.show) return;
    const std::string prefix = input_.spec.ranks > 0 ? fmt::format("[{}] ", process) : "";
    input_.show(stream, prefix + std::string(line));
  }

  void take_exit(const CommandExit& exit) {
    evidence_.exits[static_cast<std::size_t>(exit.process)] = exit;
    last_change_ = Clock::now();
    const bool failed = exit.status != 0 || exit.signal != 0;
    // As torchrun does: the others of a rank that failed wait for it in vain.
    if (failed && input_.spec.ranks > 1 && !has_said_goodbye(exit.process)) {
      aftermath_ = aftermath_.value_or(after(kAftermathSeconds));
    }
  }

  // With -n the number of a command is its rank.
  bool has_said_goodbye(int rank) const {
    for (const auto& world : evidence_.worlds->worlds()) {
      if (rank < world->size && world->reader.table().rank(rank).bye) return true;
    }
    return false;
  }

  void keep_deadlines() {
    if (Clock::now() > total_) return end_by(fmt::format("total ({:g} s)", input_.spec.timeout_s));
    if (aftermath_ && Clock::now() > *aftermath_)
      return end_by(std::string(kAfterRank) + " failed");
    if (input_.spec.stop_after_steps && evidence_.worlds->all_stopped()) {
      evidence_.stopped = true;
      return end_by("");
    }
    if (seconds_since(last_change_) > kSilentSeconds && somebody_waits()) {
      return end_by(fmt::format("no record ({:g} s)", kSilentSeconds));
    }
    if (const double limit = exit_limit(); limit > 0 && seconds_since(last_change_) > limit) {
      end_by(std::string(kHungAtExit));
    }
  }

  // Inside a checked backward every rank waits for every other; a rank that is steps behind keeps
  // the others waiting. Unchecked steps record nothing, and may last.
  bool somebody_waits() const {
    for (const auto& world : evidence_.worlds->worlds()) {
      for (int rank = 0; rank < world->size; ++rank) {
        const JobRank& state = world->ranks[static_cast<std::size_t>(rank)];
        const auto& events = world->reader.table().rank(rank).events;
        const bool inside = !events.empty() && events.back().type == EventType::phase &&
                            events.back().phase == "backward";
        if (!state.closed && (inside || state.steps != world->ranks.front().steps)) return true;
      }
    }
    return false;
  }

  // How long silence may last: for ever while some rank trains. A rank whose work is done and that
  // does not leave is let go of after a while: its destructors may never end.
  double exit_limit() const {
    bool someone_left = false, someone_stays = false;
    for (const auto& world : evidence_.worlds->worlds()) {
      for (int rank = 0; rank < world->size; ++rank) {
        const JobRank& state = world->ranks[static_cast<std::size_t>(rank)];
        if (!state.announced) return 0;
        if (!state.closed && !has_finished(*world, rank)) return 0;
        (state.closed ? someone_left : someone_stays) = true;
      }
    }
    if (!someone_stays) return 0;
    return someone_left ? kExitSeconds : kLinger;
  }

  // It said so, or it has closed what the ranks that left have closed.
  static bool has_finished(const JobWorld& world, int rank) {
    const auto& table = world.reader.table();
    if (table.rank(rank).bye) return true;
    const auto& mine = world.ranks[static_cast<std::size_t>(rank)].steps;
    bool someone_left = false;
    for (int other = 0; other < world.size; ++other) {
      const JobRank& state = world.ranks[static_cast<std::size_t>(other)];
      if (!state.closed) continue;
      someone_left = true;
      if (state.steps != mine) return false;
    }
    return someone_left && !mine.empty();
  }

  void end_by(const std::string& deadline) {
    ended_ = true;
    evidence_.deadline = deadline;
    for (const auto& world : evidence_.worlds->worlds()) {
      for (int rank = 0; rank < world->size; ++rank) {
        const JobRank& state = world->ranks[static_cast<std::size_t>(rank)];
        if (state.announced && !state.closed) ended_by_us_.insert({world.get(), rank});
      }
    }
    end_descendants(kGraceSeconds, input_.spared);
    reap_limit_ = after(kReapSeconds);
  }

  void drain() {
    const auto limit = after(kDrainSeconds);
    while (!(loop_.all_closed() && loop_.outputs_closed()) && Clock::now() < limit) {
      loop_.turn(after(kTurnSeconds / 10), -1);
    }
  }

  void record_ends() {
    for (auto& world : evidence_.worlds->worlds()) {
      for (int rank = 0; rank < world->size; ++rank) record_end(*world, rank);
    }
  }

  // What is known of the process that a rank was: its own command's end where we started it, else
  // that of the launcher.
  const CommandExit* exit_of(const JobWorld& world, int rank) const {
    const JobRank& state = world.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < evidence_.exits.size(); ++i) {
      if (state.announced && loop_.pid(static_cast<int>(i)) == state.pid)
        return &evidence_.exits[i];
    }
    const bool by_number = world.size == static_cast<int>(evidence_.exits.size());
    const auto number = static_cast<std::size_t>(rank);
    return by_number && !state.announced ? &evidence_.exits[number] : nullptr;
  }

  void record_end(JobWorld& world, int rank) {
    RankEvidence& evidence = world.reader.table().rank(rank);
    const CommandExit* exit = exit_of(world, rank);
    evidence.end_order = world.ranks[static_cast<std::size_t>(rank)].end_order;
    if (exit != nullptr) {
      evidence.exit_status = exit->status;
      evidence.signal = exit->signal;
      evidence.last_stderr = evidence_.last_errors[static_cast<std::size_t>(exit->process)];
    }
    const bool by_us = ended_by_us_.contains({&world, rank});
    if (by_us && !evidence_.stopped) evidence.deadline = evidence_.deadline;
    evidence.end = by_us && evidence_.stopped             ? RankEnd::bye
                   : by_us                                ? RankEnd::deadline
                   : exit != nullptr && exit->signal != 0 ? RankEnd::signalled
                   : evidence.bye                         ? RankEnd::bye
                                                          : RankEnd::exited;
  }

  SeenProcesses seen() const {
    SeenProcesses seen;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(directory_.path(), error), end;
         !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with("seen-")) continue;
      ++seen.python;
      const bool wrapped = name.ends_with("-wrapped");
      seen.forked += name.ends_with("-forked");
      seen.helpers += name.ends_with("-helper");
      seen.wrapped += wrapped;
      seen.torch += wrapped || name.ends_with("-torch");
    }
    return seen;
  }

  const JobInput& input_;
  RunDirectory directory_;
  JobEvidence evidence_;
  Clock::time_point total_ = Clock::time_point::max();
  Clock::time_point last_change_ = Clock::now();
  Clock::time_point reap_limit_ = Clock::time_point::max();
  std::optional<Clock::time_point> aftermath_;
  bool ended_ = false;
  std::set<std::pair<const JobWorld*, int>> ended_by_us_;
  std::map<int, std::string> kept_;  // lines by connection, for --keep
  JobLoop loop_;                     // last: ends before what its events touch
};

}  // namespace

JobEvidence run_job(const JobInput& input) { return JobArm(input).run(); }

}  // namespace gradcheck
