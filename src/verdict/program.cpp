// SPDX-License-Identifier: Apache-2.0
#include "verdict/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <tuple>

#include "model/phrases.h"

namespace gradcheck {
namespace {

// What Gloo says on a rank whose peer went away (gloo/transport/tcp/pair.cc, unbound_buffer.cc).
constexpr const char* kPeerLost[] = {"Connection closed by peer", "Connection reset by peer",
                                     "Timed out waiting", "Application timeout caused pair closure",
                                     "Broken pipe"};

bool blames_a_peer(const EventRecord& exception) {
  return std::any_of(std::begin(kPeerLost), std::end(kPeerLost), [&](const char* text) {
    return exception.text.find(text) != std::string::npos;
  });
}

// Ranks that the front ended because of another one (run/native_arm.cpp names these deadlines).
bool waited(const RankEvidence& rank) {
  return rank.deadline == kWaitedForOthers || rank.deadline.starts_with(kAfterRank);
}

using Closed = std::set<std::tuple<std::string, std::int64_t, std::int64_t, Stage>>;

// What a rank has finished, to compare how far ranks got.
Closed closed_stages(const RankEvidence& rank) {
  Closed closed;
  for (const MarkRecord& mark : rank.marks) {
    closed.insert({mark.model, mark.step, mark.micro, mark.stage});
  }
  return closed;
}

// The first line; one that only announces the next ("backend='inductor' raised:") with the next.
std::string first_line(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || end == 0 || text[end - 1] != ':') return text.substr(0, end);
  return text.substr(0, end) + " " + first_line(text.substr(end + 1));
}

std::string in_phase(const std::string& phase) { return phase.empty() ? "" : " in " + phase; }

class Court {
 public:
  Court(const Context& context, FindingSet& findings) : context_(context), findings_(findings) {}

  ProgramEnd judge() {
    for (const int rank : every_rank(size())) describe(rank);
    sort_out();
    // A rank that died on its own account is why others were late.
    if (!dead_.empty()) {
      accuse(802, dead_, Outcome::error);
    } else if (!late_.empty()) {
      accuse(803, furthest_behind(), Outcome::error);
    } else if (!raised_.empty()) {
      accuse(801, raised_, Outcome::raised);
    }
    return std::move(end_);
  }

 private:
  int size() const { return context_.table().world_size(); }
  const RankEvidence& evidence(int rank) const { return context_.table().rank(rank); }

  // One row a rank for the report, whoever is guilty.
  void describe(int rank) {
    const RankEvidence& from = evidence(rank);
    RankRow& row = end_.ranks.emplace_back();
    row.rank = rank;
    row.end = name_of(from.end);
    row.status = from.end == RankEnd::signalled ? from.signal : from.exit_status;
    row.phase = from.phase;
    row.last_record = from.last_record;
    row.stderr_tail = from.last_stderr;
    const EventRecord* exception = exception_of(from);
    if (exception == nullptr) return;
    row.exception_type = exception->error_type;
    row.exception_text = exception->text;
    if (!exception->phase.empty()) row.phase = exception->phase;
  }

  bool said_goodbye(int rank) const {
    const RankEvidence& from = evidence(rank);
    if (exception_of(from) != nullptr) return false;
    // A job's is what it gave to sys.exit; its evidence is complete all the same.
    return from.bye ? !context_.input.native || from.bye->status == 0 : from.end == RankEnd::bye;
  }

  // A job says so before it answers its last wants, and may hang or abort after that.
  bool came_to_its_exit(int rank) const {
    const RankEvidence& from = evidence(rank);
    return !context_.input.native && from.phase == "exit" && exception_of(from) == nullptr;
  }

  bool ended_well(int rank) const { return said_goodbye(rank) || came_to_its_exit(rank); }

  // Evidence is complete if the rank closed what the ranks that ended well have closed. Where none
  // did (os._exit skips every goodbye), all must have closed the same in a program that succeeded.
  bool is_complete(int rank) const {
    if (ended_well(rank)) return true;
    const Closed closed = closed_stages(evidence(rank));
    const bool nobody = none_ended_well();
    if (closed.empty() || (nobody && context_.input.program_status != 0)) return false;
    const auto ranks = every_rank(size());
    return std::all_of(ranks.begin(), ranks.end(), [&](int other) {
      if (!nobody && !ended_well(other)) return true;
      return closed_stages(evidence(other)) == closed;
    });
  }

  bool none_ended_well() const {
    const auto ranks = every_rank(size());
    return std::none_of(ranks.begin(), ranks.end(), [this](int rank) { return ended_well(rank); });
  }

  // Launchers end the other ranks of one that failed.
  bool was_ended_for_another(int rank) const {
    const RankEvidence& from = evidence(rank);
    const bool by_order =
        from.end == RankEnd::signalled && (from.signal == SIGTERM || from.signal == SIGKILL);
    if (!by_order || from.end_order == 0) return false;
    const auto ranks = every_rank(size());
    return std::any_of(ranks.begin(), ranks.end(), [&](int other) {
      const std::int64_t order = evidence(other).end_order;
      return order > 0 && order < from.end_order &&
             (exception_of(evidence(other)) != nullptr || !is_complete(other));
    });
  }

  void sort_out() {
    for (const int rank : every_rank(size())) {
      const EventRecord* exception = exception_of(evidence(rank));
      if (exception != nullptr) {
        (blames_a_peer(*exception) ? victims_ : raised_).push_back(rank);
      } else if (evidence(rank).end != RankEnd::bye || !said_goodbye(rank)) {
        sort_silent(rank);
      }
    }
    if (!nobody_is_guilty()) return;
    for (const int rank : victims_) {
      (exception_of(evidence(rank)) != nullptr ? raised_ : dead_).push_back(rank);
    }
    if (victims_.empty()) late_ = waiting_;
  }

  bool nobody_is_guilty() const { return late_.empty() && dead_.empty() && raised_.empty(); }

  void sort_silent(int rank) {
    const RankEvidence& from = evidence(rank);
    if (is_complete(rank)) return note_late_death(rank);
    // Writing to a peer that has gone is a victim's death.
    const bool lost_its_peer = from.end == RankEnd::signalled && from.signal == SIGPIPE;
    if (from.end == RankEnd::deadline) {
      (waited(from) ? waiting_ : late_).push_back(rank);
    } else {
      const bool victim = lost_its_peer || was_ended_for_another(rank);
      (victim ? victims_ : dead_).push_back(rank);
    }
  }

  void note_late_death(int rank) {
    const auto message = fmt::format("rank {} {} after its evidence was complete", rank, how(rank));
    findings_.say(802, message, {rank});
    findings_.soften(802, message, Severity::note);
  }

  // Of ranks that passed their deadlines together, those that got least far kept the others
  // waiting: all run one program. Equal ones are all named.
  std::vector<int> furthest_behind() const {
    std::size_t least = evidence(late_.front()).events.size();
    for (const int rank : late_) least = std::min(least, evidence(rank).events.size());
    std::vector<int> behind;
    for (const int rank : late_) {
      if (evidence(rank).events.size() == least) behind.push_back(rank);
    }
    return behind;
  }

  std::string how(int rank) const {
    const RankEvidence& from = evidence(rank);
    switch (from.end) {
      case RankEnd::signalled:
        return fmt::format("died{} ({})", in_phase(from.phase), signal_text(from.signal));
      case RankEnd::deadline:
        if (from.deadline == kHungAtExit) return from.deadline;
        return fmt::format("passed the deadline {}{}", from.deadline, in_phase(from.phase));
      case RankEnd::exited:
        if (!from.hello && from.phase.empty()) {
          return fmt::format("recorded nothing and exited with status {}", from.exit_status);
        }
        return fmt::format("exited{} with status {} without saying goodbye", in_phase(from.phase),
                           from.exit_status);
      default:
        return fmt::format("stopped recording{} without saying goodbye", in_phase(from.phase));
    }
  }

  // The first line is for people; the report has the whole text.
  std::string what_raised(int rank) const {
    const EventRecord& exception = *exception_of(evidence(rank));
    return fmt::format("raised {}{}: {}", exception.error_type, in_phase(exception.phase),
                       first_line(exception.text));
  }

  // Told of the first of them; the others are named with it.
  void accuse(int code, const std::vector<int>& guilty, Outcome outcome) {
    const int first = guilty.front();
    const std::string story = code == 801 ? what_raised(first) : how(first);
    end_.outcome = outcome;
    end_.headline = ranks_text(guilty) + " " + story;
    std::string message = end_.headline;
    const std::string& last = evidence(first).last_record;
    if (!last.empty()) message += "; last record: " + last;
    findings_.say(code, message, guilty);
  }

  const Context& context_;
  FindingSet& findings_;
  ProgramEnd end_;
  std::vector<int> late_, dead_, raised_;  // on their own account
  std::vector<int> victims_, waiting_;     // perhaps because of another rank
};

}  // namespace

ProgramEnd read_end(const Context& context, FindingSet& findings) {
  return Court(context, findings).judge();
}

// The rank's own exception comes before one that a lost peer caused.
const EventRecord* exception_of(const RankEvidence& rank) {
  const EventRecord* first = nullptr;
  for (const EventRecord& event : rank.events) {
    if (event.type != EventType::exception) continue;
    if (!blames_a_peer(event)) return &event;
    if (first == nullptr) first = &event;
  }
  return first;
}

}  // namespace gradcheck
