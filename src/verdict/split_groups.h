// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <utility>

#include "model/evidence_table.h"

namespace gradcheck {

// Models that different ranks wrap over different groups, none of which shares a rank with another:
// what each rank's model is to be called, by (name, rank).
using GroupNames = std::map<std::pair<std::string, int>, std::string>;

GroupNames name_by_group(const EvidenceTable& table);

// Adds to `result` what is not known of such models: whether their groups should agree. Models that
// start equal are replicas by the look of it, and a pass would be a guess.
void say_what_stands_apart(const EvidenceTable& table, const GroupNames& names,
                           EvidenceTable& result);

// A note of every rank.
void say_everywhere(EvidenceTable& table, const std::string& text);

}  // namespace gradcheck
