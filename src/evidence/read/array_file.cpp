// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/array_file.h"

#include <filesystem>
#include <utility>

#include "evidence/read/array_formats.h"
#include "evidence/read/mapped_file.h"
#include "evidence/read/safetensors.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

ArrayFile open_safetensors(const std::string& path) {
  auto file = std::make_shared<SafetensorsFile>(path);
  ArrayFile result;
  for (const auto& [name, view] : file->tensors()) {
    result.arrays.emplace(name, NamedArray{view.dtype, view.shape, {}, view.bytes});
  }
  result.storage = std::move(file);
  result.mapped = true;
  return result;
}

ArrayFile open_npy(const std::string& path) {
  auto file = std::make_shared<MappedFile>(path);
  ArrayFile result;
  result.arrays.emplace(std::filesystem::path(path).stem().string(), parse_npy(file->bytes()));
  result.storage = std::move(file);
  result.mapped = true;
  return result;
}

constexpr const char* kFormats = "it must end in .safetensors, .npz, .npy or .jsonl";

ArrayFile opened(const std::string& path, std::uint64_t most_unpacked) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".safetensors") return open_safetensors(path);
  if (extension == ".npy") return open_npy(path);
  if (extension == ".npz") return open_npz(path, most_unpacked);
  if (extension == ".jsonl" || extension == ".ndjson") return open_json_lines(path);
  if (extension == ".pt" || extension == ".pth" || extension == ".bin") {
    throw InfrastructureError(
        "a PyTorch file may run code when it is read, so it is not; save it with "
        "safetensors.torch.save_file(tensors, PATH)");
  }
  throw InfrastructureError(kFormats);
}

}  // namespace

ArrayFile open_array_file(const std::string& path, std::uint64_t most_unpacked) {
  try {
    ArrayFile file = opened(path, most_unpacked);
    file.path = path;
    return file;
  } catch (const InfrastructureError& error) {
    const std::string what = error.what();
    throw InfrastructureError(what.starts_with(path + ": ") ? what : path + ": " + what);
  }
}

}  // namespace gradcheck
