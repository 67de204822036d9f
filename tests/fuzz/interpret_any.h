// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fstream>
#include <span>
#include <string>

#include "model/errors.h"
#include "run/dump_files.h"
#include "run/dump_table.h"
#include "run/log_prob_files.h"
#include "tests/fuzz/read_any.h"

namespace gradcheck::fuzz {

// Beyond reading: the bytes as a dump of log-probs (names, rows, masks, ids), and as one of tensors
// on two ranks. True: log-probs were found. Refused in one sentence or read; anything else is a
// bug.
inline bool interpret_any(std::span<const std::uint8_t> input, const std::string& folder) {
  if (input.empty()) return false;
  const std::string path = folder + "/input" + kExtensions[input[0] % kExtensions.size()];
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()) + 1,
             static_cast<std::streamsize>(input.size() - 1));
  try {
    const Dump ranks[] = {open_dump({{path}}), open_dump({{path}})};
    tabulate(ranks, ranks);
  } catch (const UsageError&) {
  }
  try {
    LogProbFiles files;
    files.containers = {path};
    for (const LogProbShard& shard : read_log_probs(files)) {
      const bool whole = shard.offsets.back() == shard.old_values.size() &&
                         shard.old_values.size() == shard.new_values.size() &&
                         (shard.mask.empty() || shard.mask.size() == shard.old_values.size());
      if (!whole) __builtin_trap();
    }
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace gradcheck::fuzz
