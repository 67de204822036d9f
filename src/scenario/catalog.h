// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/errors.h"
#include "model/scenario.h"

namespace gradcheck {

// A scenario file of the folder that cannot be used. It spoils only selections that reach it.
struct BrokenFile {
  std::string stem;
  ScenarioError error;
};

// The scenarios of one folder, read completely before anything runs. Sorted by file name; the
// scenarios of a matrix stay in the order of its values.
struct Catalog {
  std::string folder;
  std::vector<Scenario> scenarios;
  std::vector<BrokenFile> broken;
};

// Reads every *.json that lies in the folder itself, then those of its folder `python`. A folder
// that is not there makes an empty catalog: scenarios given by path need none.
Catalog load_catalog(const std::string& folder);

// "kto[ranks=4]" → "kto": the name that the file has.
std::string base_name(const std::string& scenario_name);

// What to run. A name is a scenario, a matrix (all its scenarios), or the path of a file (it has a
// `/` or ends in .json). `filter` as in model/glob.h; empty: none. `tags` narrow what filter and
// `all` take, and alone what `all` would: a scenario must carry one of them. Beside its own tags
// every scenario carries its probe, `native` or `python`.
struct Selection {
  std::vector<std::string> names;
  std::string filter;
  bool all = false;
  std::vector<std::string> tags = {};

  bool empty() const { return names.empty() && filter.empty() && !all && tags.empty(); }
};

// The selected scenarios, each once: by name in the order given, then what filter or `all` add.
// Throws UsageError for an unknown name, a filter or tag that matches nothing, an empty selection,
// or two files that give scenarios one name; ScenarioError for a broken file. Filter and `all` take
// no broken file in the folder, a name only its own.
std::vector<Scenario> select(const Catalog& catalog, const Selection& selection);

}  // namespace gradcheck
