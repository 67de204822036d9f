// SPDX-License-Identifier: Apache-2.0
#include "run/native_arm.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "launch/deadlines.h"
#include "launch/rank_loop.h"
#include "model/control.h"
#include "model/errors.h"
#include "model/json/control.h"
#include "run/run_directory.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

const std::string kWaited(kWaitedForOthers);
constexpr double kKillPauseSeconds = 0.01;
constexpr double kDrainSeconds = 1;
constexpr double kReapSeconds = 5;  // for ended ranks; then the zygote itself is at fault
constexpr std::uint64_t kPayloadBudget = std::uint64_t{4} << 30;  // bytes an arm (design.md §3)

// One arm from fork to the last exit. Ranks meet at a barrier after every step: there the front
// asks for payloads, and lets them go on when all have answered.
class NativeArm {
 public:
  NativeArm(Zygote& zygote, const NativeArmInput& input)
      : input_(input),
        world_size_(input.scenario.ranks),
        directory_(input.parent_directory),
        seconds_(deadlines_for(input.scenario.timeout_s)),
        deadlines_(world_size_, seconds_.total),
        reader_(input.run_id, world_size_),
        ranks_(static_cast<std::size_t>(world_size_)),
        loop_(zygote, world_size_, events()) {
    std::filesystem::create_directory(directory_.path() + "/payload");
  }

  ArmEvidence run() {
    try {
      return run_to_the_end();
    } catch (...) {
      end_all();  // no rank may outlive the run directory
      throw;
    }
  }

 private:
  ArmEvidence run_to_the_end() {
    for (int rank = 0; rank < world_size_; ++rank) {
      deadlines_.set(rank, "spawn", seconds_.spawn);
      loop_.send(rank, control_to_line(program_of(rank)));
    }
    while (!loop_.all_exited()) {
      if (Clock::now() > reap_limit_) throw InfrastructureError("ended ranks were not reaped");
      if (loop_.turn(next_turn(), input_.interrupt.descriptor())) end_interrupted();
      keep_deadlines();
      meet_at_barrier();
    }
    drain();
    for (int rank = 0; rank < world_size_; ++rank) record_end(rank);
    Payloads payloads = open_payloads(directory_.path(), reader_.table());
    reader_.table().finish();
    return {std::move(reader_), std::move(payloads)};
  }

  struct RankState {
    bool at_barrier = false;
    std::size_t wants_sent = 0;  // of wants_; one at a time, so that neither side's buffer fills
    std::string ended_by_us;     // name of the deadline
    ExitPacket exit;
  };

  RankEvents events() {
    return {[this](int rank, std::string_view line) { take_line(rank, line); },
            [this](int rank, std::string_view rest) { reader_.end_of_stream(rank, rest); },
            [this](const ExitPacket& exit) { take_exit(exit); }};
  }

  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  RankEvidence& record(int rank) { return reader_.table().rank(rank); }

  RunRecord program_of(int rank) const {
    RunRecord run;
    run.run = input_.run_id;
    run.directory = directory_.path();
    run.rank = rank;
    run.world_size = world_size_;
    run.steps = input_.scenario.steps;
    run.micro_steps = input_.scenario.micro_steps;
    run.seed = input_.scenario.seed;
    run.rendezvous_timeout_s = seconds_.rendezvous;
    run.collective_timeout_s = seconds_.step + 5;  // ours speaks first and names the rank
    run.program = *input_.arm.program.native;
    return run;
  }

  void take_line(int rank, std::string_view line) {
    const AcceptedLine accepted = reader_.accept(rank, line);
    switch (accepted.kind) {
      case LineKind::hello:
        deadlines_.set(rank, "rendezvous", seconds_.rendezvous);
        break;
      case LineKind::phase:
        enter_phase(rank);
        break;
      case LineKind::step_done:
        state(rank).at_barrier = true;
        deadlines_.clear(rank);
        break;
      case LineKind::payload:
        ask_or_let_go(rank);
        break;
      case LineKind::bye:
        take_bye(rank);
        break;
      case LineKind::refused:
        hurry_others(rank, "'s evidence was refused");
        break;
      default:
        break;
    }
  }

  void enter_phase(int rank) {
    if (record(rank).phase == "construct") deadlines_.set(rank, "step", seconds_.step);
    if (input_.progress) {
      input_.progress(input_.arm.name + ": rank " + std::to_string(rank) + " " +
                      record(rank).phase);
    }
  }

  void take_bye(int rank) {
    deadlines_.set(rank, "exit after bye", seconds_.bye);
    if (record(rank).bye->status != 0) hurry_others(rank);
  }

  void take_exit(const ExitPacket& exit) {
    RankState& ended = state(exit.rank);
    ended.exit = exit;
    deadlines_.clear(exit.rank);
    if (!record(exit.rank).bye) hurry_others(exit.rank);
  }

  // Survivors of a bad end wait for a rank that will never answer.
  void hurry_others(int rank, const std::string& what = " ended") {
    if (!aftermath_.empty()) return;
    aftermath_ = std::string(kAfterRank) + " " + std::to_string(rank) + what;
    deadlines_.hurry(aftermath_, seconds_.aftermath);
  }

  void end_rank(int rank, const std::string& deadline) {
    if (loop_.has_exited(rank) || !state(rank).ended_by_us.empty()) return;
    state(rank).ended_by_us = aftermath_.empty() ? deadline : aftermath_;
    loop_.kill(rank);
    reap_limit_ = after(kReapSeconds);
  }

  // Nobody can hold it against a rank that it waited at the barrier for one that never came.
  void end_late(int rank, const std::string& deadline) {
    end_rank(rank, state(rank).at_barrier ? kWaited : deadline);
  }

  // One rank's silence is every rank's: those that wait for it are ended with it. Deadlines of
  // ranks that wait for each other lie close together, so all that are about to pass count as
  // passed: which of the ranks is behind is the judge's to say.
  void keep_deadlines() {
    for (int rank = 0; deadlines_.total_passed() && rank < world_size_; ++rank) {
      end_late(rank, deadlines_.total_name());
    }
    if (deadlines_.passed().empty()) return;
    for (const int rank : deadlines_.passed(seconds_.step / 4)) {
      end_late(rank, deadlines_.name(rank));
      deadlines_.clear(rank);
    }
    for (int rank = 0; rank < world_size_; ++rank) {
      if (!record(rank).bye) end_rank(rank, kWaited);
    }
  }

  // Ranks that were ended take a moment to die; no need to spin meanwhile.
  Clock::time_point next_turn() const {
    return std::max(deadlines_.next(), after(kKillPauseSeconds));
  }

  // What dead ranks left in their pipes. A child that a rank started may hold them open for ever.
  void drain() {
    const auto limit = after(kDrainSeconds);
    while (!loop_.all_ended() && Clock::now() < limit) loop_.turn(limit, -1);
  }

  void end_all() {
    for (int rank = 0; rank < world_size_; ++rank) loop_.kill(rank);
    const auto limit = after(kReapSeconds);
    while (!loop_.all_exited() && Clock::now() < limit) loop_.turn(limit, -1);
  }

  void end_interrupted() {
    end_all();
    input_.interrupt.throw_if_any();
  }

  bool barrier_is_complete() const {
    int waiting = 0;
    int ended = 0;
    for (int rank = 0; rank < world_size_; ++rank) {
      const bool waits = ranks_[static_cast<std::size_t>(rank)].at_barrier;
      waiting += waits ? 1 : 0;
      ended += !waits && loop_.has_exited(rank) ? 1 : 0;
    }
    return waiting > 0 && waiting + ended == world_size_;
  }

  void meet_at_barrier() {
    if (!barrier_is_complete()) return;
    const auto share = kPayloadBudget / static_cast<std::uint64_t>(world_size_) /
                       static_cast<std::uint64_t>(input_.scenario.steps);
    wants_ = wanted_payloads(reader_.table(), step_++, share);
    for (int rank = 0; rank < world_size_; ++rank) {
      if (!std::exchange(state(rank).at_barrier, false)) continue;
      state(rank).wants_sent = 0;
      ask_or_let_go(rank);
    }
  }

  void ask_or_let_go(int rank) {
    deadlines_.set(rank, "step", seconds_.step);
    const std::size_t next = state(rank).wants_sent++;
    const bool asks = next < wants_.size();
    loop_.send(rank, asks ? control_to_line(wants_[next]) : control_to_line(GoRecord{step_ - 1}));
  }

  // A status other than the announced one is an end of its own (a crash in a destructor, say).
  bool said_goodbye(int rank) {
    const auto& bye = record(rank).bye;
    return bye && (bye->status != 0 || state(rank).exit.status == 0);
  }

  void record_end(int rank) {
    const RankState& ended = state(rank);
    RankEvidence& evidence = record(rank);
    evidence.exit_status = ended.exit.status;
    evidence.signal = ended.exit.signal;
    evidence.last_stderr = loop_.errors(rank);
    evidence.deadline = ended.ended_by_us;
    evidence.end = !ended.ended_by_us.empty() ? RankEnd::deadline
                   : ended.exit.signal != 0   ? RankEnd::signalled
                   : said_goodbye(rank)       ? RankEnd::bye
                                              : RankEnd::exited;
  }

  const NativeArmInput& input_;
  const int world_size_;
  RunDirectory directory_;
  DeadlineSeconds seconds_;
  Deadlines deadlines_;
  EvidenceReader reader_;
  std::vector<RankState> ranks_;
  std::int64_t step_ = 0;    // that the next barrier closes
  std::vector<Want> wants_;  // of the last barrier
  std::string aftermath_;    // once a rank has ended badly: what other deadlines are called
  Clock::time_point reap_limit_ = Clock::time_point::max();
  RankLoop loop_;  // last: ends before what its events touch
};

}  // namespace

ArmEvidence run_native_arm(Zygote& zygote, const NativeArmInput& input) {
  return NativeArm(zygote, input).run();
}

}  // namespace gradcheck
