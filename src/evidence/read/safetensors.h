// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "model/payload_view.h"

namespace gradcheck {

// A safetensors file mapped into memory. Views stay valid as long as the object lives. The file is
// hostile input: header length, offsets, sizes and overlaps are checked before a view is made.
// Errors: InfrastructureError with path and reason.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  void map(const std::string& path);

  std::span<const std::byte> mapped_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace gradcheck
