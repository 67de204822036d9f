// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gradcheck::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Compares with tests/golden/reports/NAME byte for byte. GRADCHECK_UPDATE_GOLDEN=1 writes the file
// instead; read the difference before committing it.
inline void expect_golden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(GRADCHECK_SOURCE_DIR) / "tests/golden/reports" / name;
  if (std::getenv("GRADCHECK_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(read_file(path), text) << path;
}

}  // namespace gradcheck::test
