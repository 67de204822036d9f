// SPDX-License-Identifier: Apache-2.0
#include "verdict/spoken_notes.h"

#include <map>

#include "model/phrases.h"

namespace gradcheck {
namespace {

constexpr std::string_view kJoin = "join";  // read by verdict/facts.cpp
// What one rank alone does to its gradients weights the ranks, and nothing compares it.
constexpr std::string_view kRewritten = "are rewritten by the program's own";
constexpr std::size_t kMostNotes = 20;

// Texts in the order in which the lowest rank said them.
std::vector<std::pair<std::string, std::vector<int>>> by_text(const EvidenceTable& table) {
  std::vector<std::pair<std::string, std::vector<int>>> texts;
  std::map<std::string, std::size_t> known;
  for (const int rank : every_rank(table.world_size())) {
    for (const EventRecord& event : table.rank(rank).events) {
      if (event.type != EventType::note || event.text.empty() || event.text == kJoin) continue;
      const auto [place, is_new] = known.try_emplace(event.text, texts.size());
      if (is_new) texts.push_back({event.text, {}});
      auto& ranks = texts[place->second].second;
      if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
    }
  }
  return texts;
}

}  // namespace

void pass_notes_on(const Context& context, FindingSet& findings, std::vector<std::string>& notes) {
  const EvidenceTable& table = context.table();
  std::size_t left = kMostNotes;
  for (const auto& [text, ranks] : by_text(table)) {
    if (text.starts_with(kNotChecked)) {
      findings.say(604, text, ranks);
      continue;
    }
    const bool everybody = static_cast<int>(ranks.size()) == table.world_size();
    if (!everybody && text.find(kRewritten) != std::string::npos) {
      findings.say(604, ranks_text(ranks) + ": " + text, ranks);
      continue;
    }
    if (left == 0) continue;
    --left;
    notes.push_back(everybody ? text : ranks_text(ranks) + ": " + text);
  }
}

}  // namespace gradcheck
