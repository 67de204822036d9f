// SPDX-License-Identifier: Apache-2.0
#include "run/dump_files.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <regex>
#include <utility>

#include "model/errors.h"
#include "run/numbered_names.h"

namespace gradcheck {
namespace {

namespace fs = std::filesystem;

// What .npz members unpack to stays in memory; everything else is mapped.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{2} << 30;

bool is_dump(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".safetensors" || extension == ".npz" || extension == ".npy";
}

bool is_torch_file(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".pt" || extension == ".pth" || extension == ".bin";
}

// What cannot be looked at is none; opening it says why.
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

struct Folder {
  std::vector<std::string> files;    // dumps, in natural order
  std::vector<std::string> folders;  // likewise
  std::vector<std::string> torch_files;
};

Folder read_folder(const std::string& path) {
  Folder folder;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().string();
    if (entry->path().filename().string().starts_with('.')) continue;
    if (is_folder(entry->path())) {
      folder.folders.push_back(name);
    } else if (is_dump(entry->path())) {
      folder.files.push_back(name);
    }
    if (is_torch_file(entry->path())) folder.torch_files.push_back(name);
  }
  if (error) throw UsageError(path + ": " + error.message());
  std::sort(folder.files.begin(), folder.files.end(), natural_less);
  std::sort(folder.folders.begin(), folder.folders.end(), natural_less);
  return folder;
}

[[noreturn]] void refuse_torch(const std::string& what) {
  throw UsageError(what +
                   " may run code when they are read, so they are not; save tensors with "
                   "safetensors.torch.save_file(tensors, PATH)");
}

[[noreturn]] void refuse_empty(const std::string& path, const Folder& folder) {
  if (!folder.torch_files.empty()) refuse_torch(path + ": PyTorch files");
  throw UsageError(path + ": there is no .safetensors, .npz or .npy file in it");
}

// NAME-00002-of-00003.safetensors: `dump` is the same for all shards of a dump.
struct Shard {
  std::string dump;
  std::size_t number = 0, of = 0;
};

std::optional<Shard> shard_of(const std::string& path) {
  static const std::regex kShard(R"(^(.*)-(\d{1,6})-of-(\d{1,6})(\.[a-z]+)$)");
  std::smatch match;
  if (!std::regex_match(path, match, kShard)) return std::nullopt;
  const std::string before = match[1];
  // rank-00000-of-00008 counts ranks.
  if (before.ends_with("rank") || before.ends_with("RANK")) return std::nullopt;
  return Shard{before + match[4].str(), std::stoul(match[2]), std::stoul(match[3])};
}

struct Group {
  std::string name;  // without shard numbers
  std::vector<std::string> paths;
  std::vector<Shard> shards;  // empty: a file of its own
};

void require_all_shards(const Group& group) {
  if (group.shards.empty()) return;
  const std::size_t of = group.shards.front().of;
  std::vector<bool> seen(of + 1);
  for (const Shard& shard : group.shards) {
    const bool good = shard.of == of && shard.number >= 1 && shard.number <= of;
    if (!good) throw UsageError(group.name + ": its shards count themselves differently");
    seen[shard.number] = true;
  }
  for (std::size_t number = 1; number <= of; ++number) {
    if (!seen[number]) {
      throw UsageError(
          fmt::format("{}: shard {} of {} is not among the files", group.name, number, of));
    }
  }
}

// In the order in which the dumps first occur.
std::vector<Group> grouped(const std::vector<std::string>& paths) {
  std::vector<Group> groups;
  for (const std::string& path : paths) {
    const auto shard = shard_of(path);
    const std::string name = shard ? shard->dump : path;
    auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return shard && !group.shards.empty() && group.name == name;
    });
    if (at == groups.end()) at = groups.insert(groups.end(), {name, {}, {}});
    at->paths.push_back(path);
    if (shard) at->shards.push_back(*shard);
  }
  for (const Group& group : groups) require_all_shards(group);
  return groups;
}

std::vector<std::string> names_of(const std::vector<Group>& groups) {
  std::vector<std::string> names;
  for (const Group& group : groups) names.push_back(group.name);
  return names;
}

// Of a folder nobody has said what its files are: their names must.
void require_one_series(const std::string& folder, const std::vector<std::string>& names) {
  if (names.size() < 2) return;
  const auto numbers = series_numbers(names);
  if (!numbers) {
    throw UsageError(fmt::format(
        "{}: {} and {} do not differ in one number alone, so which rank is whose cannot be told; "
        "name the files instead",
        folder, fs::path(names.front()).filename().string(),
        fs::path(names.back()).filename().string()));
  }
  const bool counts_ranks = fs::path(names.front()).filename().string().find("rank") == 0;
  if (counts_ranks && numbers->front() != 0) {
    throw UsageError(
        fmt::format("{}: rank 0 is missing before {}; name the files to compare these "
                    "alone",
                    folder, fs::path(names.front()).filename().string()));
  }
  for (std::size_t i = 1; i < numbers->size(); ++i) {
    if ((*numbers)[i] == (*numbers)[i - 1] + 1) continue;
    throw UsageError(
        fmt::format("{}: between {} and {} a file is missing; name the files to compare "
                    "these alone",
                    folder, fs::path(names[i - 1]).filename().string(),
                    fs::path(names[i]).filename().string()));
  }
}

std::vector<RankFiles> ranks_of(std::vector<Group> groups) {
  std::vector<RankFiles> ranks;
  for (Group& group : groups) ranks.push_back({std::move(group.paths)});
  return ranks;
}

// A rank that saved another format, or a folder of shards, is a rank nobody would look at.
void refuse_unread_ranks(const Folder& folder) {
  for (const std::string& other : folder.folders) {
    const fs::path first = folder.files.front();
    const std::string twin = other + first.extension().string();
    if (twin == first.string() || !series_numbers({first.string(), twin}, false)) continue;
    throw UsageError(other +
                     " is a folder named like a rank, beside files; name the ranks instead");
  }
  for (const std::string& torch_file : folder.torch_files) {
    const fs::path first = folder.files.front();
    const std::string twin = fs::path(torch_file).replace_extension(first.extension()).string();
    const bool is_saved_twice =
        std::find(folder.files.begin(), folder.files.end(), twin) != folder.files.end();
    if (!is_saved_twice && series_numbers({first.string(), twin}, false)) {
      refuse_torch(torch_file + " is named like a rank; PyTorch files");
    }
  }
}

std::vector<RankFiles> ranks_in(const std::string& path) {
  const Folder folder = read_folder(path);
  if (folder.files.empty() && folder.folders.empty()) refuse_empty(path, folder);
  if (!folder.files.empty()) {
    std::vector<Group> groups = grouped(folder.files);
    refuse_unread_ranks(folder);
    require_one_series(path, names_of(groups));
    return ranks_of(std::move(groups));
  }
  require_one_series(path, folder.folders);
  std::vector<RankFiles> ranks;
  for (const std::string& rank : folder.folders) ranks.push_back(find_one_dump(rank));
  return ranks;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found{};
  const int failed = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (failed != 0 || paths.empty()) throw UsageError(pattern + ": no file matches");
  std::sort(paths.begin(), paths.end(), natural_less);
  return paths;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_pattern(const std::string& word) {
  return word.find_first_of("*?[") != std::string::npos && !is_there(word);
}

std::vector<std::string> expanded(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    const auto more = is_pattern(word) ? matches_of(word) : std::vector{word};
    paths.insert(paths.end(), more.begin(), more.end());
  }
  // A shell puts rank10 before rank2.
  if (series_numbers(paths, false)) std::sort(paths.begin(), paths.end(), natural_less);
  return paths;
}

void add_tensor(Dump& dump, std::map<std::string, std::string>& origins, const std::string& path,
                const std::string& name, const NamedArray& array) {
  const auto [known, is_new] = origins.emplace(name, path);
  if (!is_new) {
    throw UsageError(fmt::format("tensor '{}' stands in {} and in {}", name, known->second, path));
  }
  dump.files.back().bytes += array.bytes.size();
  dump.tensors.emplace(name, TensorView{array.dtype, array.shape, array.bytes});
}

void add_file(Dump& dump, std::map<std::string, std::string>& origins, const std::string& path,
              bool alone) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".jsonl" || extension == ".ndjson") {
    throw UsageError(path + ": JSON lines hold no tensors; save safetensors, .npz or .npy");
  }
  try {
    dump.files.push_back({open_array_file(path, kMostUnpacked), 0});
  } catch (const InfrastructureError& error) {
    throw UsageError(error.what());
  }
  dump.mapped &= dump.files.back().arrays.mapped;
  // The one array of a .npy file is called after the file, which is called after its rank.
  const bool nameless = alone && fs::path(path).extension() == ".npy";
  for (const auto& [name, array] : dump.files.back().arrays.arrays) {
    add_tensor(dump, origins, path, nameless ? "array" : name, array);
  }
}

}  // namespace

RankFiles find_one_dump(const std::string& word) {
  if (!is_folder(word)) return {{word}};
  const Folder folder = read_folder(word);
  if (folder.files.empty()) refuse_empty(word, folder);
  grouped(folder.files);  // all shards are there
  return {folder.files};
}

std::vector<RankFiles> find_dumps(const std::vector<std::string>& words) {
  const std::vector<std::string> paths = expanded(words);
  if (paths.size() == 1 && is_folder(paths.front())) return ranks_in(paths.front());
  std::vector<RankFiles> ranks;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (is_folder(path)) {
      ranks.push_back(find_one_dump(path));
    } else {
      files.push_back(path);
    }
  }
  if (!files.empty() && !ranks.empty()) {
    throw UsageError(
        fmt::format("{} is a file, other ranks are folders; give one of the two", files.front()));
  }
  return files.empty() ? ranks : ranks_of(grouped(files));
}

Dump open_dump(const RankFiles& files) {
  Dump dump;
  std::map<std::string, std::string> origins;
  for (const std::string& path : files.paths) {
    add_file(dump, origins, path, files.paths.size() == 1);
  }
  return dump;
}

void require_distinct(const std::vector<RankFiles>& dumps) {
  std::map<std::pair<dev_t, ino_t>, std::string> known;
  for (const RankFiles& dump : dumps) {
    for (const std::string& path : dump.paths) {
      struct stat status{};
      if (::stat(path.c_str(), &status) != 0) continue;  // opening it says why
      const auto [at, is_new] = known.emplace(std::pair(status.st_dev, status.st_ino), path);
      if (is_new) continue;
      throw UsageError(fmt::format("{} and {} are one file; compared with itself it proves nothing",
                                   at->second, path));
    }
  }
}

}  // namespace gradcheck
