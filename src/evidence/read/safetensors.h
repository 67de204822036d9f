// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <string>

#include "evidence/read/mapped_file.h"
#include "model/payload_view.h"

namespace gradcheck {

// A safetensors file mapped into memory. Views stay valid as long as the object lives. The file is
// hostile input: header length, offsets, sizes and overlaps are checked before a view is made.
// Errors: InfrastructureError with path and reason.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  MappedFile file_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace gradcheck
