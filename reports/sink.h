// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace gradcheck {

// Where one reporter's text goes. Owned by its reporter, used from its thread. Every failure is an
// InfrastructureError: "cannot write report PATH: REASON; …".
class Sink {
 public:
  // Text goes out at once. The descriptor is not owned; `name` is for messages.
  static Sink to_descriptor(int descriptor, std::string name);

  // Text is held until finish(), then written to PATH.tmp, synced and renamed, so that PATH is
  // never half a report; missing parent folders are made. What is not a regular file (a pipe,
  // /dev/null) is written in place.
  static Sink to_file(std::filesystem::path path);

  static Sink to_string(std::string& text);  // for tests; `text` outlives the sink

  void write(std::string_view text);
  void finish();  // once, after the last write

 private:
  int descriptor_ = -1;
  std::string name_;
  std::filesystem::path path_;
  std::string held_;
  std::string* text_ = nullptr;
};

}  // namespace gradcheck
