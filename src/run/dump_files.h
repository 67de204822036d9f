// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "evidence/read/array_file.h"
#include "model/payload_view.h"

namespace gradcheck {

// Which files are which rank's, from what was written on a command line. A word is
//   a file: a rank, save that NAME-00001-of-00003.… and its like are the shards of one,
//   a folder beside other words: a rank, whose files are its shards,
//   a folder alone: its files are a rank each, or, where it holds none, its folders are,
//   a pattern (* ? [) that no file is called: all that match it.
// Files that differ in one number stand in the order of that number, rank2 before rank10; in a
// folder they must differ in one and leave none out. Nothing else is guessed.
// Errors: UsageError naming what cannot be told.
struct RankFiles {
  std::vector<std::string> paths;
};
std::vector<RankFiles> find_dumps(const std::vector<std::string>& words);

// A file or folder that is one dump, whatever its files are called.
RankFiles find_one_dump(const std::string& word);

// The tensors of one dump. Views point into the files, which live as long as it does.
struct Dump {
  struct File {
    ArrayFile arrays;
    std::size_t bytes = 0;  // of its tensors
  };
  std::vector<File> files;
  std::map<std::string, TensorView> tensors;
  bool mapped = true;  // all of it: pages may be dropped and come again
};

// Opens the files of a dump. Errors: UsageError: a file that is not what its name says, PyTorch's
// own format, a tensor that stands in two of the files.
Dump open_dump(const RankFiles& files);

// No file may stand for two dumps, under whatever name: compared with itself it proves nothing.
// Errors: UsageError naming both.
void require_distinct(const std::vector<RankFiles>& dumps);

}  // namespace gradcheck
