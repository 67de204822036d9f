// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/safetensors.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "evidence/write/json_line.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

std::string_view safetensors_name(DType dtype) {
  const std::string_view name = safetensors_name_of(dtype);
  if (!name.empty()) return name;
  throw InfrastructureError("safetensors has no name for " + std::string(name_of(dtype)));
}

std::string header_of(std::span<const NamedTensor> tensors) {
  std::string header = "{";
  std::uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::uint64_t end = offset + tensor.bytes.size();
    JsonLine entry;
    entry.text("dtype", safetensors_name(tensor.dtype)).integers("shape", tensor.shape);
    entry.integers("data_offsets", std::vector<std::uint64_t>{offset, end});
    JsonLine quoted_key;  // {"KEY":…} without its braces
    std::string pair = quoted_key.text(tensor.key, "").finish();
    header += (header.size() > 1 ? "," : "") + pair.substr(1, pair.size() - 4) + entry.finish();
    offset = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');  // data starts aligned, as the format advises
  return header;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void fail(const std::string& path) {
  throw InfrastructureError("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors) {
  const std::string temporary = path + ".tmp";
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(temporary.c_str(), "wb"));
  if (!file) fail(temporary);
  const std::string header = header_of(tensors);
  const std::uint64_t length = header.size();
  bool ok = std::fwrite(&length, sizeof length, 1, file.get()) == 1;
  ok = ok && std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
  for (const NamedTensor& tensor : tensors) {
    if (tensor.bytes.empty()) continue;  // its pointer may be null, which fwrite must not get
    ok = ok && std::fwrite(tensor.bytes.data(), 1, tensor.bytes.size(), file.get()) ==
                   tensor.bytes.size();
  }
  ok = std::fflush(file.get()) == 0 && ok;
  if (!ok || std::rename(temporary.c_str(), path.c_str()) != 0) fail(path);
}

}  // namespace gradcheck
