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
constexpr std::uint64_t kPayloadBudget = std::uint64_t{4} << 30;  // bytes a run (evidence.md)

// A rank names its payload files; only those of the run directory are opened.
bool stays_inside(const std::filesystem::path& file) {
  return file.is_relative() && std::find(file.begin(), file.end(), "..") == file.end();
}

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
        evidence_{EvidenceReader(input.run_id, world_size_), {}, {}},
        ranks_(static_cast<std::size_t>(world_size_)),
        loop_(zygote, world_size_, events()) {
    std::filesystem::create_directory(directory_.path() + "/payload");
  }

  ArmEvidence run() {
    for (int rank = 0; rank < world_size_; ++rank) {
      deadlines_.set(rank, "spawn", seconds_.spawn);
      loop_.send(rank, control_to_line(program_of(rank)));
    }
    while (!loop_.all_ended()) {
      if (loop_.turn(deadlines_.next(), input_.interrupt.descriptor())) end_interrupted();
      keep_deadlines();
      meet_at_barrier();
    }
    for (int rank = 0; rank < world_size_; ++rank) record_end(rank);
    open_payloads();
    evidence_.reader.table().finish();
    return std::move(evidence_);
  }

 private:
  struct RankState {
    bool at_barrier = false;
    bool ended_badly = false;
    int answers_due = 0;      // payload records
    std::string ended_by_us;  // name of the deadline
    ExitPacket exit;
  };

  RankEvents events() {
    return {[this](int rank, std::string_view line) { take_line(rank, line); },
            [this](int rank, std::string_view rest) { evidence_.reader.end_of_stream(rank, rest); },
            [this](const ExitPacket& exit) { take_exit(exit); }};
  }

  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  RankEvidence& record(int rank) { return evidence_.reader.table().rank(rank); }

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
    const AcceptedLine accepted = evidence_.reader.accept(rank, line);
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
        take_answer(rank);
        break;
      case LineKind::bye:
        take_bye(rank);
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
  void hurry_others(int rank) {
    RankState& guilty = state(rank);
    if (std::exchange(guilty.ended_badly, true)) return;
    deadlines_.hurry(std::string(kAfterRank) + " " + std::to_string(rank) + " ended",
                     seconds_.aftermath);
  }

  void end_rank(int rank, const std::string& deadline) {
    if (loop_.has_exited(rank) || !state(rank).ended_by_us.empty()) return;
    state(rank).ended_by_us = deadline;
    loop_.kill(rank);
  }

  // Nobody can hold it against a rank that it waited at the barrier for one that never came.
  void end_late(int rank, const std::string& deadline) {
    end_rank(rank, state(rank).at_barrier ? kWaited : deadline);
  }

  // One rank's silence is every rank's: those that wait for it are ended with it.
  void keep_deadlines() {
    for (int rank = 0; deadlines_.total_passed() && rank < world_size_; ++rank) {
      end_late(rank, deadlines_.total_name());
    }
    const std::vector<int> late = deadlines_.passed();
    for (const int rank : late) {
      end_late(rank, deadlines_.name(rank));
      deadlines_.clear(rank);
    }
    for (int rank = 0; !late.empty() && rank < world_size_; ++rank) {
      if (!record(rank).bye) end_rank(rank, kWaited);
    }
  }

  void end_interrupted() {
    for (int rank = 0; rank < world_size_; ++rank) loop_.kill(rank);
    while (!loop_.all_ended()) loop_.turn(after(1), -1);
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
    EvidenceTable& table = evidence_.reader.table();
    table.finish();
    const auto share = kPayloadBudget / static_cast<std::uint64_t>(world_size_) /
                       static_cast<std::uint64_t>(input_.scenario.steps);
    const std::vector<Want> wants = wanted_payloads(table, step_, share);
    for (int rank = 0; rank < world_size_; ++rank) {
      if (!std::exchange(state(rank).at_barrier, false)) continue;
      deadlines_.set(rank, "step", seconds_.step);
      for (const Want& want : wants) loop_.send(rank, control_to_line(want));
      state(rank).answers_due = static_cast<int>(wants.size());
      if (wants.empty()) loop_.send(rank, control_to_line(GoRecord{step_}));
    }
    ++step_;
  }

  void take_answer(int rank) {
    if (--state(rank).answers_due == 0) loop_.send(rank, control_to_line(GoRecord{step_ - 1}));
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
                   : evidence.bye             ? RankEnd::bye
                                              : RankEnd::exited;
  }

  void open_payloads() {
    for (int rank = 0; rank < world_size_; ++rank) {
      for (const PayloadRecord& payload : record(rank).payloads) open_payload(rank, payload);
    }
  }

  void open_payload(int rank, const PayloadRecord& payload) {
    try {
      if (!stays_inside(payload.file)) throw InfrastructureError("file lies outside the run");
      SafetensorsFile file(directory_.path() + "/" + payload.file);
      for (const auto& [key, view] : file.tensors()) {
        evidence_.payloads[{payload.step, payload.micro, payload.stage, rank, key}] = view;
      }
      evidence_.files.push_back(std::move(file));
    } catch (const InfrastructureError& error) {
      evidence_.reader.table().refuse("rank " + std::to_string(rank) +
                                      ", payload: " + error.what());
    }
  }

  const NativeArmInput& input_;
  const int world_size_;
  RunDirectory directory_;
  DeadlineSeconds seconds_;
  Deadlines deadlines_;
  ArmEvidence evidence_;
  std::vector<RankState> ranks_;
  std::int64_t step_ = 0;
  RankLoop loop_;  // last: ends before what its events touch
};

}  // namespace

ArmEvidence run_native_arm(Zygote& zygote, const NativeArmInput& input) {
  return NativeArm(zygote, input).run();
}

}  // namespace gradcheck
