// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace gradcheck {

// Cuts a byte stream into lines. What is too long for a line is handed on as it is (to be refused),
// so that memory stays bounded.
class LineBuffer {
 public:
  explicit LineBuffer(std::size_t longest) : longest_(longest) {}

  // Calls `take(line)` for every line that `bytes` complete, without its newline.
  template <class Take>
  void feed(std::string_view bytes, Take take) {
    const std::size_t scanned = partial_.size();
    partial_.append(bytes);
    std::size_t start = 0;
    for (auto end = partial_.find('\n', scanned); end != std::string::npos;
         end = partial_.find('\n', start)) {
      take(std::string_view(partial_).substr(start, end - start));
      start = end + 1;
    }
    partial_.erase(0, start);
    if (partial_.size() <= longest_) return;
    take(std::string_view(partial_));
    partial_.clear();
  }

  const std::string& rest() const { return partial_; }  // after the last newline

 private:
  std::size_t longest_;
  std::string partial_;
};

}  // namespace gradcheck
