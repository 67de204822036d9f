// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "evidence/read/array_file.h"
#include "model/errors.h"

namespace gradcheck::fuzz {

inline constexpr std::array<const char*, 4> kExtensions = {".safetensors", ".npy", ".npz",
                                                           ".jsonl"};

// Opens the bytes as a file of the format that the first byte names and touches every element.
// True: read. False: refused in one sentence. Anything else is a bug.
inline bool read_any(std::span<const std::uint8_t> input, const std::string& folder) {
  if (input.empty()) return false;
  const std::string path = folder + "/input" + kExtensions[input[0] % kExtensions.size()];
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()) + 1,
             static_cast<std::streamsize>(input.size() - 1));
  try {
    const ArrayFile file = open_array_file(path);
    volatile std::uint8_t sum = 0;
    for (const auto& [name, array] : file.arrays) {
      for (const std::byte byte : array.bytes) sum = sum ^ static_cast<std::uint8_t>(byte);
    }
    return true;
  } catch (const InfrastructureError&) {
    return false;
  }
}

// A folder of this process, gone with it.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("gradcheck-fuzz-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace gradcheck::fuzz
