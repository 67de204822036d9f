// SPDX-License-Identifier: Apache-2.0
// The fuzzer's corpus, interpreted: as log-probs and as tensors of two ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/interpret_any.h"

namespace gradcheck {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<std::pair<std::string, Bytes>> corpus() {
  std::vector<std::pair<std::string, Bytes>> inputs;
  const std::string folder = std::string(GRADCHECK_SOURCE_DIR) + "/tests/fuzz/corpus";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(entry.path().filename().string(),
                        Bytes(std::istreambuf_iterator<char>(file), {}));
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

TEST(DumpCorpus, HoldsLogProbsInMoreThanOneFormatAndNoneWhereItIsWrong) {
  const fuzz::Folder folder;
  std::size_t found = 0;
  for (const auto& [name, bytes] : corpus()) {
    const bool read = fuzz::interpret_any(bytes, folder.path());
    EXPECT_TRUE(!read || name.starts_with("right-")) << name;
    found += read;
  }
  EXPECT_GE(found, 3U);
}

TEST(DumpCorpus, MayHaveAnyByteWrongAndAnyEndMissing) {
  const fuzz::Folder folder;
  std::mt19937 random(2);
  for (const auto& [name, bytes] : corpus()) {
    for (std::size_t i = 1; i < bytes.size(); ++i) {
      Bytes changed = bytes;
      changed[i] ^= static_cast<std::uint8_t>(1 + random() % 255);
      fuzz::interpret_any(changed, folder.path());
      fuzz::interpret_any(std::span(bytes).first(i), folder.path());
    }
  }
}

}  // namespace
}  // namespace gradcheck
