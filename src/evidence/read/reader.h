// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/read/parse.h"
#include "model/evidence_table.h"

namespace gradcheck {

// What a line was, for whoever drives the ranks.
enum class LineKind : std::uint8_t { other, hello, phase, mark, step_done, payload, bye, refused };

struct AcceptedLine {
  LineKind kind = LineKind::other;
  std::int64_t step = 0;
};

// Fills an evidence table from the lines of all ranks of one run. Lines of one rank arrive in
// order, ranks interleave as they like. Whatever cannot be trusted is refused with a sentence in
// EvidenceTable::refused() and makes the arm an error: a rank that speaks for another, another run,
// schema or world size, a record given twice, a gap in the line numbers, a broken line.
class EvidenceReader {
 public:
  EvidenceReader(std::string run, int world_size);

  // `line` without its newline, from the channel (or file) of `rank`.
  AcceptedLine accept(int rank, std::string_view line);
  // The stream of `rank` has ended; `rest` is what followed its last newline.
  void end_of_stream(int rank, std::string_view rest);

  EvidenceTable& table() { return table_; }
  const EvidenceTable& table() const { return table_; }

 private:
  struct Stream {
    std::uint64_t next_sequence = 0;
    bool greeted = false;
    std::uint64_t refused = 0;
  };

  AcceptedLine refuse(int rank, const std::string& why);
  AcceptedLine store(int rank, const ParsedLine& line);
  AcceptedLine greet(int rank, const HelloRecord& hello);
  AcceptedLine note_event(int rank, const EventRecord& event);

  LineParser parser_;
  std::string run_;
  EvidenceTable table_;
  std::vector<Stream> streams_;
  std::string world_;  // of the first hello
};

}  // namespace gradcheck
