// SPDX-License-Identifier: Apache-2.0
#include "scenario/catalog.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "model/glob.h"
#include "model/nearest.h"
#include "scenario/load.h"

namespace gradcheck {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> json_files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  std::error_code ignored;  // what cannot be looked at is read, and refused with its reason
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (entry->path().extension() == ".json" && !hidden &&
        !fs::is_directory(entry->path(), ignored)) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Native scenarios, then those of Python jobs.
std::vector<fs::path> scenario_files_in(const std::string& folder) {
  std::vector<fs::path> files = json_files_in(folder);
  const std::vector<fs::path> jobs = json_files_in(folder + "/python");
  files.insert(files.end(), jobs.begin(), jobs.end());
  return files;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

const BrokenFile* find_broken(const Catalog& catalog, const std::string& name) {
  const auto found = std::ranges::find(catalog.broken, base_name(name), &BrokenFile::stem);
  return found == catalog.broken.end() ? nullptr : &*found;
}

[[noreturn]] void fail_unknown(const Catalog& catalog, const std::string& name) {
  std::vector<std::string> known;
  for (const Scenario& scenario : catalog.scenarios) {
    known.push_back(base_name(scenario.name));
    known.push_back(scenario.name);
  }
  const std::string question = did_you_mean(name, known);
  const std::string where =
      known.empty() ? "; there are no scenarios in " + catalog.folder
                    : (question.empty() ? ";" : question) + " `gradcheck --list` shows all";
  throw UsageError("unknown scenario '" + name + "'" + where);
}

std::vector<Scenario> named(const Catalog& catalog, const std::string& name) {
  if (is_path(name)) return load_scenarios(name);
  if (const BrokenFile* file = find_broken(catalog, name)) throw file->error;
  std::vector<Scenario> found;
  for (const Scenario& scenario : catalog.scenarios) {
    if (scenario.name == name || base_name(scenario.name) == name) found.push_back(scenario);
  }
  if (found.empty()) fail_unknown(catalog, name);
  return found;
}

bool carries(const Scenario& scenario, const std::string& tag) {
  const bool native = !scenario.arms.empty() && scenario.arms.front().program.native;
  if (tag == (native ? "native" : "python")) return true;
  return std::ranges::find(scenario.tags, tag) != scenario.tags.end();
}

bool carries_any(const Scenario& scenario, const std::vector<std::string>& tags) {
  return tags.empty() || std::ranges::any_of(tags, [&scenario](const std::string& tag) {
           return carries(scenario, tag);
         });
}

std::string in_words(const std::vector<std::string>& tags) {
  std::string text;
  for (const std::string& tag : tags) text += (text.empty() ? "'" : " or '") + tag + "'";
  return text;
}

// An empty filter takes every name, an empty list of tags every scenario.
std::vector<Scenario> filtered(const Catalog& catalog, const std::string& filter,
                               const std::vector<std::string>& tags) {
  if (!catalog.broken.empty()) throw catalog.broken.front().error;
  std::vector<Scenario> found;
  std::ranges::copy_if(catalog.scenarios, std::back_inserter(found), [&](const Scenario& scenario) {
    return (filter.empty() || filter_match(filter, scenario.name)) && carries_any(scenario, tags);
  });
  if (found.empty()) {
    std::string what;
    if (!filter.empty()) what = " matches the filter '" + filter + "'";
    if (!tags.empty()) what += (what.empty() ? "" : " and") + (" has the tag " + in_words(tags));
    if (what.empty()) what = " lies in " + catalog.folder;
    throw UsageError("no scenario" + what + "; `gradcheck --list` shows all");
  }
  return found;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || fs::equivalent(a, b, error);
}

// Adds what is not selected yet. One name for two scenarios would make reports ambiguous.
void add(std::vector<Scenario>& selected, std::vector<Scenario> more) {
  for (Scenario& scenario : more) {
    const auto twin = std::ranges::find(selected, scenario.name, &Scenario::name);
    if (twin == selected.end()) {
      selected.push_back(std::move(scenario));
    } else if (!is_same_file(twin->file, scenario.file)) {
      throw UsageError("two scenarios are called '" + scenario.name + "': " + twin->file + " and " +
                       scenario.file);
    }
  }
}

}  // namespace

Catalog load_catalog(const std::string& folder) {
  Catalog catalog{folder, {}, {}};
  for (const fs::path& file : scenario_files_in(folder)) {
    try {
      std::ranges::move(load_scenarios(file.string()), std::back_inserter(catalog.scenarios));
    } catch (const ScenarioError& error) {
      catalog.broken.push_back({file.stem().string(), error});
    }
  }
  return catalog;
}

std::string base_name(const std::string& scenario_name) {
  return scenario_name.substr(0, scenario_name.find('['));
}

std::vector<Scenario> select(const Catalog& catalog, const Selection& selection) {
  if (selection.empty()) {
    throw UsageError("no scenario is selected; name one, or use --filter, --tag or --all");
  }
  std::vector<Scenario> selected;
  for (const std::string& name : selection.names) add(selected, named(catalog, name));
  const std::vector<std::string>& tags = selection.tags;
  if (!selection.filter.empty()) add(selected, filtered(catalog, selection.filter, tags));
  const bool tags_alone = selection.filter.empty() && !tags.empty();
  if (selection.all || tags_alone) add(selected, filtered(catalog, "", tags));
  return selected;
}

}  // namespace gradcheck
