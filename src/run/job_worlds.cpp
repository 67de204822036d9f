// SPDX-License-Identifier: Apache-2.0
#include "run/job_worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <variant>

#include "model/json/control.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

// A control line must fit into the rank's socket buffer, because nobody may wait for it there.
constexpr std::size_t kWantNamesBytes = std::size_t{24} * 1024;

std::vector<Want> in_small_lines(const Want& want) {
  std::vector<Want> parts;
  std::size_t bytes = 0;
  for (const std::string& name : want.names) {
    if (parts.empty() || bytes + name.size() > kWantNamesBytes) {
      parts.push_back({want.step, want.micro, want.stage, {}, want.budget_bytes});
      bytes = 0;
    }
    parts.back().names.push_back(name);
    bytes += name.size() + 3;
  }
  return parts;
}

std::optional<HelloRecord> hello_from(LineParser& parser, std::string_view line) {
  try {
    const ParsedLine parsed = parser.parse(line);
    if (const auto* hello = std::get_if<HelloRecord>(&parsed.record)) return *hello;
  } catch (const std::exception&) {  // told as one problem, whatever the parser disliked
  }
  return std::nullopt;
}

}  // namespace

JobWorld::JobWorld(const std::string& run, const HelloRecord& hello)
    : name(hello.world),
      size(hello.world_size),
      restart(hello.restart),
      reader(run.empty() ? hello.run : run, hello.world_size),
      ranks(static_cast<std::size_t>(hello.world_size)) {}

bool JobWorld::is_over(int rank) const {
  const JobRank& state = ranks[static_cast<std::size_t>(rank)];
  return state.exiting || state.closed;
}

void JobWorlds::take_line(int connection, std::string_view line) {
  if (ignored_.contains(connection)) return;
  if (!places_.contains(connection)) greet(connection, line);
  const auto found = places_.find(connection);
  if (found == places_.end()) return;
  const Place place = found->second;
  take_accepted(place, place.world->reader.accept(place.rank, line));
}

void JobWorlds::greet(int connection, std::string_view line) {
  const auto refuse = [&](const std::string& why) {
    problems_.push_back(why);
    ignored_.insert(connection);
  };
  const auto hello = hello_from(parser_, line);
  if (!hello) return refuse("a connection did not begin with a hello of this version");
  if (hello->world_size < 1 || hello->world_size > kMaxRanks || hello->rank < 0 ||
      hello->rank >= hello->world_size) {
    return refuse(fmt::format("rank {} of {} is impossible", hello->rank, hello->world_size));
  }
  JobWorld* world = world_for(*hello);
  if (world == nullptr) {
    ignored_.insert(connection);
    return;
  }
  JobRank& rank = world->ranks[static_cast<std::size_t>(hello->rank)];
  if (rank.announced) {
    return refuse(fmt::format("rank {} of {} announced itself twice (processes {} and {})",
                              hello->rank, hello->world_size, rank.pid, hello->pid));
  }
  rank.announced = true;
  rank.connection = connection;
  rank.pid = hello->pid;
  places_[connection] = {world, hello->rank};
}

// Of a world that was started again (torchrun's elastic restart) the newest is judged.
JobWorld* JobWorlds::world_for(const HelloRecord& hello) {
  for (auto& world : worlds_) {
    if (world->name != hello.world) continue;
    if (world->size != hello.world_size) {
      problems_.push_back(fmt::format("ranks disagree on the world's size: {} and {}", world->size,
                                      hello.world_size));
      return nullptr;
    }
    if (hello.restart == world->restart) return world.get();
    const int older = std::min(hello.restart, world->restart);
    const std::string note = fmt::format("restart {} was replaced by a newer one", older);
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
    if (hello.restart < world->restart) return nullptr;
    std::erase_if(places_, [&](const auto& place) {
      const bool old = place.second.world == world.get();
      if (old) ignored_.insert(place.first);
      return old;
    });
    std::erase_if(stopped_, [&](const auto& rank) { return rank.first == world.get(); });
    world = std::make_unique<JobWorld>(settings_.run, hello);
    return world.get();
  }
  worlds_.push_back(std::make_unique<JobWorld>(settings_.run, hello));
  return worlds_.back().get();
}

void JobWorlds::take_accepted(const Place& place, const AcceptedLine& accepted) {
  JobRank& rank = place.world->ranks[static_cast<std::size_t>(place.rank)];
  switch (accepted.kind) {
    case LineKind::mark:
      return take_mark(place);
    case LineKind::payload:
      return take_payload(place);
    case LineKind::phase:
      if (place.world->reader.table().rank(place.rank).phase != "exit") return;
      rank.exiting = true;
      return settle(*place.world);
    case LineKind::step_done:
      stopped_.insert({place.world, place.rank});
      return;
    default:
      return;
  }
}

void JobWorlds::take_mark(const Place& place) {
  const MarkRecord& mark = place.world->reader.table().rank(place.rank).marks.back();
  if (mark.stage != Stage::after) return;
  JobRank& rank = place.world->ranks[static_cast<std::size_t>(place.rank)];
  const auto [step, is_new] = rank.steps.insert({mark.model, mark.step});
  if (settings_.exact && is_new) rank.waiting.insert(*step);
  settle(*place.world);
}

void JobWorlds::take_payload(const Place& place) {
  JobRank& rank = place.world->ranks[static_cast<std::size_t>(place.rank)];
  if (rank.open_wants > 0) --rank.open_wants;
  let_go_where_done(*place.world);
}

void JobWorlds::take_close(int connection, std::string_view rest) {
  const auto found = places_.find(connection);
  if (found == places_.end()) return;
  auto& [world, number] = found->second;
  JobRank& rank = world->ranks[static_cast<std::size_t>(number)];
  rank.closed = true;
  rank.end_order = 1 + std::count_if(world->ranks.begin(), world->ranks.end(),
                                     [](const JobRank& other) { return other.end_order > 0; });
  world->reader.end_of_stream(number, rest);
  settle(*world);
}

// A step is settled once every rank has been through it, or will not come to it any more.
void JobWorlds::settle(JobWorld& world) {
  std::set<std::pair<std::string, std::int64_t>> open;
  for (const JobRank& rank : world.ranks) {
    for (const auto& step : rank.steps) {
      if (!world.asked.contains(step)) open.insert(step);
    }
  }
  for (const auto& step : open) {
    bool due = true;
    for (int rank = 0; rank < world.size; ++rank) {
      const JobRank& state = world.ranks[static_cast<std::size_t>(rank)];
      due &= state.steps.contains(step) || world.is_over(rank);
    }
    if (!due) continue;
    world.asked.insert(step);
    ask(world, step.first, step.second);
  }
  let_go_where_done(world);
}

void JobWorlds::ask(JobWorld& world, const std::string& model, std::int64_t step) {
  const auto wants = wanted_payloads_of_model(world.reader.table(), model, step,
                                              settings_.budget_bytes, settings_.exact);
  for (const Want& whole : wants) {
    for (const Want& want : in_small_lines(whole)) {
      const std::string line = control_to_line(want);
      for (JobRank& rank : world.ranks) {
        if (rank.connection < 0 || rank.closed || rank.let_go) continue;
        ++rank.open_wants;
        send_(rank.connection, line);
      }
    }
  }
}

// A rank that waits at the end of a step goes on once every rank came to it and it has answered.
void JobWorlds::let_on_where_asked(JobWorld& world) {
  for (JobRank& rank : world.ranks) {
    if (rank.connection < 0 || rank.closed || rank.let_go || rank.open_wants > 0) continue;
    std::erase_if(rank.waiting, [&](const auto& step) {
      if (!world.asked.contains(step)) return false;
      send_(rank.connection, control_to_line(GoRecord{step.second}));
      return true;
    });
  }
}

// A rank at its end waits for `go`, but only while there may be something to ask.
void JobWorlds::let_go_where_done(JobWorld& world) {
  let_on_where_asked(world);
  for (JobRank& rank : world.ranks) {
    if (!rank.exiting || rank.closed || rank.let_go || rank.open_wants > 0) continue;
    const bool settled = std::all_of(rank.steps.begin(), rank.steps.end(),
                                     [&](const auto& step) { return world.asked.contains(step); });
    if (!settled) continue;
    rank.let_go = true;
    send_(rank.connection, control_to_line(GoRecord{0}));
  }
}

bool JobWorlds::all_stopped() const {
  std::size_t ranks = 0;
  for (const auto& world : worlds_) ranks += world->ranks.size();
  return ranks > 0 && stopped_.size() == ranks;
}

}  // namespace gradcheck
