// SPDX-License-Identifier: Apache-2.0
#include "reports/sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "model/errors.h"

namespace gradcheck {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& name, const std::error_code& reason) {
  throw InfrastructureError("cannot write report " + name + ": " + reason.message() +
                            "; free space there or give --report another path");
}

std::error_code last_error() { return {errno, std::generic_category()}; }

// Empty where all went well.
std::error_code write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return last_error();
    }
  }
  return {};
}

std::error_code write_file(const fs::path& path, std::string_view text, int extra_flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | extra_flags, 0644);
  if (file < 0) return last_error();
  std::error_code error = write_all(file, text);
  // Some file systems report a full disk only here.
  if (!error && extra_flags != 0 && ::fsync(file) != 0) error = last_error();
  if (::close(file) != 0 && !error) error = last_error();
  return error;
}

std::error_code replace_file(const fs::path& path, std::string_view text) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) return error;
  const fs::path temporary = path.string() + ".tmp";
  error = write_file(temporary, text, O_CREAT | O_TRUNC);
  if (!error) fs::rename(temporary, path, error);
  std::error_code ignored;
  if (error) fs::remove(temporary, ignored);
  return error;
}

bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// Through symbolic links, so that a rename replaces what the link names and not the link.
fs::path target_of(const fs::path& path) {
  std::error_code error;
  fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target;
}

}  // namespace

Sink Sink::to_descriptor(int descriptor, std::string name) {
  Sink sink;
  sink.descriptor_ = descriptor;
  sink.name_ = std::move(name);
  return sink;
}

Sink Sink::to_file(fs::path path) {
  Sink sink;
  sink.name_ = path.string();
  sink.path_ = std::move(path);
  return sink;
}

Sink Sink::to_string(std::string& text) {
  Sink sink;
  sink.text_ = &text;
  return sink;
}

void Sink::write(std::string_view text) {
  if (text_ != nullptr) {
    text_->append(text);
  } else if (descriptor_ < 0) {
    held_.append(text);
  } else if (const std::error_code error = write_all(descriptor_, text)) {
    fail(name_, error);
  }
}

void Sink::finish() {
  if (text_ != nullptr || descriptor_ >= 0) return;
  const std::error_code error =
      is_special(path_) ? write_file(path_, held_, 0) : replace_file(target_of(path_), held_);
  if (error) fail(name_, error);
}

}  // namespace gradcheck
