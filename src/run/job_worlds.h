// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/read/reader.h"
#include "model/payload_view.h"

namespace gradcheck {

// Where a rank of a job stands, besides what its evidence says.
struct JobRank {
  int connection = -1;
  std::int64_t pid = 0;
  bool announced = false;
  bool exiting = false;  // its program is over: it answers wants until it hears `go`
  bool let_go = false;
  bool closed = false;         // its channel has ended
  std::int64_t end_order = 0;  // 1: the first of its world whose channel ended
  // With `exact`: it has ended these steps and waits for one `go` each.
  std::set<std::pair<std::string, std::int64_t>> waiting;
  int open_wants = 0;                                    // sent and not yet answered
  std::set<std::pair<std::string, std::int64_t>> steps;  // (model, step) it has been through
};

// One world of ranks, as its `hello`s describe it. A job may hold several.
struct JobWorld {
  std::string name;
  int size = 1;
  int restart = 0;
  EvidenceReader reader;
  std::vector<JobRank> ranks;
  std::set<std::pair<std::string, std::int64_t>>
      asked;  // (model, step) whose payloads were settled

  JobWorld(const std::string& run, const HelloRecord& hello);
  bool is_over(int rank) const;  // exiting or closed
};

// Sorts the lines of all connections by world and rank, and decides what to ask. Sends nothing by
// itself but through `send`. Connections that never said hello are no ranks.
class JobWorlds {
 public:
  struct Settings {
    std::string run;
    std::uint64_t budget_bytes = 0;  // of payloads, a rank and step
    bool exact = false;  // locals are wanted too, and ranks wait for `go` at the end of a step
  };
  using Send = std::function<void(int connection, const std::string& line)>;

  JobWorlds(Settings settings, Send send)
      : settings_(std::move(settings)), send_(std::move(send)) {}

  void take_line(int connection, std::string_view line);
  void take_close(int connection, std::string_view rest);

  const std::vector<std::unique_ptr<JobWorld>>& worlds() const { return worlds_; }
  std::vector<std::unique_ptr<JobWorld>>& worlds() { return worlds_; }
  // What cannot be laid at the door of one world: connections that spoke nonsense, ranks announced
  // twice, restarts that were replaced.
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool all_stopped() const;  // every rank has been through the steps that it was to check

 private:
  struct Place {
    JobWorld* world = nullptr;
    int rank = 0;
  };

  void greet(int connection, std::string_view line);
  JobWorld* world_for(const HelloRecord& hello);
  void take_accepted(const Place& place, const AcceptedLine& accepted);
  void take_mark(const Place& place);
  void take_payload(const Place& place);
  void settle(JobWorld& world);
  void ask(JobWorld& world, const std::string& model, std::int64_t step);
  void let_go_where_done(JobWorld& world);
  void let_on_where_asked(JobWorld& world);

  Settings settings_;
  Send send_;
  LineParser parser_;
  std::vector<std::unique_ptr<JobWorld>> worlds_;
  std::map<int, Place> places_;  // by connection
  std::set<int> ignored_;        // connections that were refused
  std::set<std::pair<JobWorld*, int>> stopped_;
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
};

}  // namespace gradcheck
