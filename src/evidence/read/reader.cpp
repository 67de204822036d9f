// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/reader.h"

#include <exception>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "model/plan.h"

namespace gradcheck {
namespace {

// A rank that writes nonsense fills one report, not the memory.
constexpr std::uint64_t kMaxRefusals = 10;

std::string describe(const TensorRecord& record) {
  return "tensor " + std::string(name_of(record.stage)) + " step " + std::to_string(record.step) +
         " micro " + std::to_string(record.micro) + " " + record.name;
}

std::string describe(const MarkRecord& record) {
  return "mark " + std::string(name_of(record.stage)) + " step " + std::to_string(record.step) +
         " micro " + std::to_string(record.micro);
}

std::string describe(const EventRecord& record) {
  const std::string type(name_of(record.type));
  const std::string detail = record.type == EventType::phase        ? record.phase
                             : record.type == EventType::collective ? record.op
                                                                    : "";
  return "event " + type + (detail.empty() ? "" : " " + detail) + " step " +
         std::to_string(record.step);
}

std::string describe(const LogProbRecord& record) {
  return "log-probs " + record.name + " step " + std::to_string(record.step);
}

bool is_group_of(const GroupRecord& group, int world_size) {
  const std::set<int> ranks(group.ranks.begin(), group.ranks.end());
  return !ranks.empty() && ranks.size() == group.ranks.size() && *ranks.rbegin() < world_size;
}

// Number of elements; nothing for a shape that no tensor has.
std::optional<std::uint64_t> elements_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t extent : shape) {
    const bool overflows =
        __builtin_mul_overflow(elements, static_cast<std::uint64_t>(extent), &elements);
    if (extent < 0 || overflows) return std::nullopt;
  }
  return elements;
}

// A shard lies inside the tensor that it is a part of.
bool lies_inside(const TensorRecord& record) {
  const auto whole = elements_of(record.shard->global_shape);
  const std::uint64_t n = record.stats.n;
  return whole && n <= *whole && record.shard->offset <= *whole - n;
}

// The state steers the judge, so it must be what the statistics say.
bool contradicts_itself(const TensorRecord& record) {
  const bool readable =
      record.state != TensorState::absent && record.state != TensorState::unreadable;
  if (!readable) return false;
  const bool counts_elements =
      (record.layout == "dense" || record.shard) && record.dtype != DType::other;
  if (counts_elements && record.stats.n != elements_of(record.shape)) return true;
  if (record.shard && !lies_inside(record)) return true;
  return record.stats.measured && record.state != state_of(record.stats);
}

}  // namespace

EvidenceReader::EvidenceReader(std::string run, int world_size)
    : run_(std::move(run)), table_(world_size), streams_(static_cast<std::size_t>(world_size)) {}

AcceptedLine EvidenceReader::refuse(int rank, const std::string& why) {
  Stream& stream = streams_[static_cast<std::size_t>(rank)];
  if (stream.refused++ < kMaxRefusals) {
    table_.refuse("rank " + std::to_string(rank) + ", line " +
                  std::to_string(stream.next_sequence) + ": " + why);
  }
  return {LineKind::refused, 0};
}

AcceptedLine EvidenceReader::accept(int rank, std::string_view line) {
  Stream& stream = streams_[static_cast<std::size_t>(rank)];
  if (line.size() > kMaxLineBytes) return refuse(rank, "longer than 64 KiB");
  ParsedLine parsed;
  try {
    parsed = parser_.parse(line);
  } catch (const std::exception& error) {
    return refuse(rank, error.what());
  }
  if (parsed.sequence != stream.next_sequence) {
    const AcceptedLine refused = refuse(
        rank, "numbered " + std::to_string(parsed.sequence) + "; lines are missing or doubled");
    stream.next_sequence = parsed.sequence + 1;
    return refused;
  }
  const bool is_hello = std::holds_alternative<HelloRecord>(parsed.record);
  if (!stream.greeted && !is_hello) return refuse(rank, "evidence before hello");
  if (table_.rank(rank).bye) return refuse(rank, "evidence after bye");
  const AcceptedLine accepted = store(rank, parsed);
  ++stream.next_sequence;
  ++table_.rank(rank).lines;
  return accepted;
}

AcceptedLine EvidenceReader::greet(int rank, const HelloRecord& hello) {
  Stream& stream = streams_[static_cast<std::size_t>(rank)];
  if (stream.greeted) return refuse(rank, "says hello twice");
  if (hello.schema != kEvidenceSchema) return refuse(rank, "schema is " + hello.schema);
  if (hello.run != run_) return refuse(rank, "belongs to another run, " + hello.run);
  if (hello.rank != rank) return refuse(rank, "calls itself rank " + std::to_string(hello.rank));
  if (hello.world_size != table_.world_size()) {
    return refuse(rank, "believes in a world of " + std::to_string(hello.world_size));
  }
  if (world_.empty()) world_ = hello.world;
  if (hello.world != world_) return refuse(rank, "belongs to another world");
  stream.greeted = true;
  table_.rank(rank).hello = hello;
  return {LineKind::hello, 0};
}

AcceptedLine EvidenceReader::note_event(int rank, const EventRecord& event) {
  RankEvidence& evidence = table_.rank(rank);
  evidence.last_record = describe(event);
  evidence.events.push_back(event);
  if (event.type == EventType::step_done) return {LineKind::step_done, event.step};
  if (event.type != EventType::phase) return {};
  evidence.phase = event.phase;
  return {LineKind::phase, event.step};
}

AcceptedLine EvidenceReader::store(int rank, const ParsedLine& line) {
  RankEvidence& evidence = table_.rank(rank);
  return std::visit(
      [&](const auto& record) -> AcceptedLine {
        using T = std::decay_t<decltype(record)>;
        if constexpr (std::is_same_v<T, HelloRecord>) {
          return greet(rank, record);
        } else if constexpr (std::is_same_v<T, TensorRecord>) {
          evidence.last_record = describe(record);
          if (contradicts_itself(record))
            return refuse(rank, describe(record) + " contradicts itself");
          if (table_.put(rank, record, line.sequence)) return {};
          return refuse(rank, describe(record) + " was given twice");
        } else if constexpr (std::is_same_v<T, GroupRecord>) {
          if (!is_group_of(record, table_.world_size())) {
            return refuse(rank, "group " + record.name + " is not a set of this world's ranks");
          }
          evidence.groups.push_back(record);
        } else if constexpr (std::is_same_v<T, WrapperRecord>) {
          if (!reduction_from_name(record.reduce)) {
            return refuse(rank, "wrapper reduces by '" + record.reduce + "', which is unknown");
          }
          evidence.wrappers.push_back(record);
        } else if constexpr (std::is_same_v<T, MarkRecord>) {
          evidence.last_record = describe(record);
          evidence.marks.push_back(record);
          return {LineKind::mark, record.step};
        } else if constexpr (std::is_same_v<T, EventRecord>) {
          return note_event(rank, record);
        } else if constexpr (std::is_same_v<T, PayloadRecord>) {
          evidence.payloads.push_back(record);
          return {LineKind::payload, record.step};
        } else if constexpr (std::is_same_v<T, LogProbRecord>) {
          evidence.last_record = describe(record);
          evidence.log_probs.push_back(record);
        } else if constexpr (std::is_same_v<T, ByeRecord>) {
          if (record.lines != line.sequence) return refuse(rank, "bye counts other lines");
          evidence.bye = record;
          return {LineKind::bye, 0};
        }
        return {};
      },
      line.record);
}

void EvidenceReader::end_of_stream(int rank, std::string_view rest) {
  // A rank that died in the middle of a line is no forger: its death is reported as such.
  if (!rest.empty() && table_.rank(rank).bye) refuse(rank, "half a line after bye");
}

}  // namespace gradcheck
