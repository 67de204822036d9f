// SPDX-License-Identifier: Apache-2.0
#include "run/evidence_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "model/errors.h"

namespace gradcheck {
namespace {

namespace fs = std::filesystem;

// rank-0.0.jsonl, rank-1.0.jsonl, …, in an order that does not depend on the file system.
std::vector<fs::path> evidence_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = name.starts_with("rank-") && name.ends_with(".jsonl");
    if (ours && fs::is_regular_file(entry->path())) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> folders_of(const std::string& directory) {
  if (!fs::is_directory(directory))
    throw InfrastructureError(directory + ": there is no such folder");
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  folders.insert(folders.begin(), directory);  // a single world's own folder may be given too
  return folders;
}

void read_file(const fs::path& path, int number, JobWorlds& worlds) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // no newline: half a line
    worlds.take_line(number, line);
    line.clear();
  }
  worlds.take_close(number, line);
}

std::string folder_of(const std::map<std::string, std::string>& folders, const JobWorld& world) {
  const auto found = folders.find(world.name);
  return found == folders.end() ? "" : found->second;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw InfrastructureError("cannot write " + path.string());
}

// World names come from a job: nothing but a plain word may become a folder's name.
std::string folder_name(const std::string& world) {
  std::string name;
  for (const char c : world) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    name += plain ? c : '-';
  }
  return name.empty() ? "world" : name;
}

void copy_payload(const fs::path& from, const fs::path& to, const fs::path& file) {
  const bool named = !file.empty() && stays_inside(file);
  if (!named || !fs::is_regular_file(from / file)) return;
  fs::create_directories((to / file).parent_path());
  fs::copy_file(from / file, to / file, fs::copy_options::overwrite_existing);
}

void copy_payloads(const fs::path& from, const fs::path& to, const RankEvidence& rank) {
  for (const PayloadRecord& payload : rank.payloads) copy_payload(from, to, payload.file);
  for (const LogProbRecord& record : rank.log_probs) copy_payload(from, to, record.file);
}

}  // namespace

JobEvidence read_evidence(const std::string& directory) {
  JobEvidence evidence;
  evidence.worlds =
      std::make_unique<JobWorlds>(JobWorlds::Settings{}, [](int, const std::string&) {});
  std::map<std::string, std::string> folders;  // world → where its files lie
  int number = 0;
  for (const fs::path& folder : folders_of(directory)) {
    const std::size_t before = evidence.worlds->worlds().size();
    for (const fs::path& file : evidence_files_in(folder))
      read_file(file, number++, *evidence.worlds);
    for (std::size_t i = before; i < evidence.worlds->worlds().size(); ++i) {
      folders[evidence.worlds->worlds()[i]->name] = folder.string();
    }
  }
  if (number == 0) {
    throw InfrastructureError(directory +
                              " holds no evidence (no <world>/rank-<r>.<restart>.jsonl)");
  }
  for (auto& world : evidence.worlds->worlds()) {
    EvidenceTable& table = world->reader.table();
    for (int rank = 0; rank < world->size; ++rank) {
      RankEvidence& end = table.rank(rank);
      end.end = end.bye ? RankEnd::bye : RankEnd::exited;
    }
    evidence.payloads.push_back(open_payloads(folder_of(folders, *world), table));
    table.finish();
  }
  return evidence;
}

void require_empty_folder(const std::string& option, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory)) {
    throw InfrastructureError(option + " " + directory + ": cannot be made: " + error.message());
  }
  if (!fs::is_empty(directory)) {
    throw UsageError(option + " " + directory +
                     ": is not empty; evidence of two runs must not be mixed");
  }
}

void keep_evidence(const std::string& directory, const std::string& run_directory,
                   const JobWorlds& worlds, const std::map<int, std::string>& lines) {
  try {
    for (const auto& world : worlds.worlds()) {
      const fs::path folder = fs::path(directory) / folder_name(world->name);
      fs::create_directories(folder);
      for (int rank = 0; rank < world->size; ++rank) {
        const JobRank& state = world->ranks[static_cast<std::size_t>(rank)];
        const auto text = lines.find(state.connection);
        if (text == lines.end()) continue;
        write(folder / fmt::format("rank-{}.{}.jsonl", rank, world->restart), text->second);
        copy_payloads(run_directory, folder, world->reader.table().rank(rank));
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw InfrastructureError(std::string("--keep: ") + error.what());
  }
}

}  // namespace gradcheck
