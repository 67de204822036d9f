// SPDX-License-Identifier: Apache-2.0
#include "verdict/split_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "model/phrases.h"
#include "verdict/agreement.h"
#include "verdict/plan.h"
#include "verdict/spoken_notes.h"

namespace gradcheck {
namespace {

using Groups = std::map<std::string, std::vector<int>>;  // by the group's name

std::map<std::string, std::map<int, std::string>> groups_by_model(const EvidenceTable& table) {
  std::map<std::string, std::map<int, std::string>> models;
  for (int rank = 0; rank < table.world_size(); ++rank) {
    for (const WrapperRecord& wrapper : table.rank(rank).wrappers) {
      if (wrapper.kind == "ddp") models[wrapper.model][rank] = wrapper.group;
    }
  }
  return models;
}

// Each rank's own group holds it, and no rank is in two.
Groups apart(const EvidenceTable& table, const std::map<int, std::string>& group_of_rank) {
  Groups groups;
  std::set<int> members;
  for (const auto& [rank, name] : group_of_rank) {
    const auto ranks = find_group(table, name);
    if (!ranks || !std::binary_search(ranks->begin(), ranks->end(), rank)) return {};
    groups.emplace(name, *ranks);
  }
  for (const auto& [name, ranks] : groups) {
    for (const int rank : ranks) {
      if (!members.insert(rank).second) return {};
    }
  }
  return groups.size() < 2 ? Groups() : groups;
}

// The first rank of each group speaks for it.
bool start_equal(const EvidenceTable& table, std::string_view model, const Groups& groups) {
  std::vector<int> speakers;
  for (const auto& [name, ranks] : groups) speakers.push_back(ranks.front());
  bool any = false;
  for (const RowKey& key : table.rows()) {
    if (key.stage != Stage::start || key.kind != TensorKind::param) continue;
    if (table.text(key.model) != model || key.step != table.rows().front().step) continue;
    const Agreement agreement = compare_ranks(table.entries(key), speakers);
    if (!agreement.equal() || !agreement.complete()) return false;
    any = true;
  }
  return any;
}

}  // namespace

GroupNames name_by_group(const EvidenceTable& table) {
  GroupNames names;
  for (const auto& [model, group_of_rank] : groups_by_model(table)) {
    for (const auto& [group, ranks] : apart(table, group_of_rank)) {
      for (const int rank : ranks) names[{model, rank}] = fmt::format("{} ({})", model, group);
    }
  }
  return names;
}

void say_what_stands_apart(const EvidenceTable& table, const GroupNames& names,
                           EvidenceTable& result) {
  std::set<std::string> models;
  for (const auto& [where, name] : names) models.insert(where.first);
  const auto by_model = groups_by_model(table);
  for (const std::string& model : models) {
    const Groups groups = apart(table, by_model.at(model));
    std::vector<std::string> texts;
    for (const auto& [name, ranks] : groups) texts.push_back(ranks_text(ranks));
    const auto story = fmt::format("{} is reduced apart over {}", model, fmt::join(texts, " and "));
    say_everywhere(result, start_equal(table, model, groups)
                               ? std::string(kNotChecked) + story + ", though it starts equal"
                               : story + ": each group is judged by itself");
  }
}

void say_everywhere(EvidenceTable& table, const std::string& text) {
  for (int rank = 0; rank < table.world_size(); ++rank) {
    EventRecord& note = table.rank(rank).events.emplace_back();
    note.type = EventType::note;
    note.text = text;
  }
}

}  // namespace gradcheck
