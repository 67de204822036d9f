// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/capture.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "probes/python/capture/endpoint.h"
#include "probes/python/capture/session.h"

namespace gc = gradcheck::capture;

namespace {

constexpr std::int32_t kMaxArrays = 64;

using Text = std::array<char, 512>;  // of fixed size: an error must be told when memory has run out

thread_local Text open_text{};   // why this thread's last open failed
thread_local Text shown_text{};  // what gradcheck_error() gave this thread last

void copy_text(Text& to, std::string_view from) noexcept {
  const std::size_t length = std::min(from.size(), to.size() - 1);
  std::memcpy(to.data(), from.data(), length);
  to[length] = '\0';
}

}  // namespace

struct gradcheck_capture {
  gradcheck_capture(int descriptor, double send_timeout_s) : session(descriptor, send_timeout_s) {}

  mutable std::mutex mutex;
  pid_t owner = ::getpid();
  std::atomic<bool> is_closed = false;  // read without the lock: then nothing is left to do
  Text error{};
  std::chrono::steady_clock::duration spent{};
  gc::Session session;
};

namespace {

// In a child of the process that opened it, the handle is somebody else's: the lock may be held by
// a thread that is not there, and the channel belongs to the parent.
bool is_usable(gradcheck_capture* capture) noexcept {
  if (capture == nullptr) {
    copy_text(open_text, "the handle is null");
    return false;
  }
  if (capture->owner == ::getpid()) return !capture->is_closed;
  copy_text(capture->error, "the handle was opened before a fork");
  return false;
}

class Timed {
 public:
  explicit Timed(gradcheck_capture& capture) : capture_(capture) {}
  ~Timed() { capture_.spent += std::chrono::steady_clock::now() - start_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  gradcheck_capture& capture_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs `action` under the handle's lock; nothing thrown leaves it. −1 where it failed.
template <typename Action>
std::int32_t guarded(gradcheck_capture* capture, Action action) noexcept {
  if (!is_usable(capture)) return -1;
  const std::lock_guard lock(capture->mutex);
  const Timed timed(*capture);
  std::int32_t result = -1;
  try {
    result = action(capture->session);
  } catch (const std::exception& error) {
    copy_text(capture->error, error.what());
  } catch (...) {
    copy_text(capture->error, "unknown error");
  }
  if (!capture->session.is_open()) capture->is_closed = true;
  if (capture->is_closed && result >= 0) copy_text(capture->error, "closed: bye has been said");
  return result;
}

template <typename Connect>
gradcheck_capture* opened(Connect connect, double send_timeout_s) noexcept {
  try {
    return new gradcheck_capture(connect(), send_timeout_s);
  } catch (const std::exception& error) {
    copy_text(open_text, error.what());
  } catch (...) {
    copy_text(open_text, "unknown error");
  }
  return nullptr;
}

const char* required(const char* text, const char* what) {
  if (text != nullptr) return text;
  throw std::invalid_argument(std::string(what) + " is null");
}

template <typename T>
std::span<T> required_list(T* list, std::int32_t count) {
  if (count < 0 || (list == nullptr && count > 0)) throw std::invalid_argument("a list is missing");
  return {list, static_cast<std::size_t>(count)};
}

gradcheck::Stage stage_of(std::int32_t value) {
  if (value < 0 || value > static_cast<std::int32_t>(gradcheck::Stage::next_forward)) {
    throw std::invalid_argument("stage is unknown");
  }
  return static_cast<gradcheck::Stage>(value);
}

gradcheck::TensorKind kind_of(std::int32_t value) {
  if (value < 0 || value > static_cast<std::int32_t>(gradcheck::TensorKind::buffer)) {
    throw std::invalid_argument("kind is unknown");
  }
  return static_cast<gradcheck::TensorKind>(value);
}

std::optional<bool> flag_of(std::int32_t value) {
  return value < 0 ? std::nullopt : std::optional(value != 0);
}

std::int32_t give(const std::optional<std::string>& line, std::span<char> out) {
  if (!line) return 0;
  if (line->size() >= out.size()) {
    throw std::invalid_argument("the front's line does not fit and was dropped");
  }
  std::copy(line->begin(), line->end(), out.begin());
  out[line->size()] = '\0';
  return static_cast<std::int32_t>(line->size());
}

}  // namespace

std::int32_t gradcheck_abi() { return GRADCHECK_ABI; }

gradcheck_capture* gradcheck_open_socket(const char* path, double send_timeout_s) {
  return opened([&] { return gc::connect_socket(required(path, "path"), send_timeout_s); },
                send_timeout_s);
}

gradcheck_capture* gradcheck_open_file(const char* path) {
  return opened([&] { return gc::create_file(required(path, "path")); }, 0);
}

void gradcheck_close(gradcheck_capture* capture) {
  if (capture == nullptr) return;
  guarded(capture, [](gc::Session& session) {
    session.flush();
    return 0;
  });
  delete capture;
}

const char* gradcheck_error(const gradcheck_capture* capture) {
  if (capture == nullptr) return open_text.data();
  std::unique_lock lock(capture->mutex, std::defer_lock);
  if (capture->owner == ::getpid()) lock.lock();
  shown_text = capture->error;
  return shown_text.data();
}

std::int32_t gradcheck_send(gradcheck_capture* capture, const char* json) {
  return guarded(capture, [&](gc::Session& session) {
    session.send(required(json, "json"));
    return 0;
  });
}

std::int32_t gradcheck_bye(gradcheck_capture* capture, std::int32_t status) {
  return guarded(capture, [&](gc::Session& session) {
    session.bye(status);
    return 0;
  });
}

std::int32_t gradcheck_flush(gradcheck_capture* capture) {
  return guarded(capture, [](gc::Session& session) {
    session.flush();
    return 0;
  });
}

std::int32_t gradcheck_slot(gradcheck_capture* capture, const char* model, const char* name,
                            const char* tied_to) {
  return guarded(capture, [&](gc::Session& session) {
    return session.slot(required(model, "model"), required(name, "name"),
                        tied_to == nullptr ? "" : tied_to);
  });
}

std::int32_t gradcheck_local(gradcheck_capture* capture, std::int32_t slot,
                             const gradcheck_view* gradient, std::int32_t copy) {
  return guarded(capture, [&](gc::Session& session) {
    session.local(slot, gc::checked(gradient), copy != 0);
    return 0;
  });
}

std::int32_t gradcheck_close_local(gradcheck_capture* capture, std::int64_t step,
                                   std::int64_t micro, const std::int32_t* slots,
                                   std::int32_t count) {
  return guarded(capture, [&](gc::Session& session) {
    session.close_local(step, micro, required_list(slots, count));
    return 0;
  });
}

std::int32_t gradcheck_drop_local(gradcheck_capture* capture, const std::int32_t* slots,
                                  std::int32_t count) {
  return guarded(capture, [&](gc::Session& session) {
    session.drop_local(required_list(slots, count));
    return 0;
  });
}

std::int32_t gradcheck_record(gradcheck_capture* capture, std::int32_t slot, std::int64_t step,
                              std::int64_t micro, std::int32_t stage, std::int32_t kind,
                              const gradcheck_view* tensor, std::int32_t requires_grad,
                              std::int32_t copy) {
  return guarded(capture, [&](gc::Session& session) {
    session.record(slot, {step, micro, stage_of(stage)}, kind_of(kind), gc::checked(tensor),
                   flag_of(requires_grad), copy != 0);
    return 0;
  });
}

std::int32_t gradcheck_mark(gradcheck_capture* capture, const char* model, std::int64_t step,
                            std::int64_t micro, std::int32_t stage) {
  return guarded(capture, [&](gc::Session& session) {
    session.mark(required(model, "model"), {step, micro, stage_of(stage)});
    return 0;
  });
}

void gradcheck_keep_budget(gradcheck_capture* capture, std::uint64_t bytes) {
  guarded(capture, [&](gc::Session& session) {
    session.set_budget(bytes);
    return 0;
  });
}

void gradcheck_forget(gradcheck_capture* capture, std::int64_t step) {
  guarded(capture, [&](gc::Session& session) {
    session.forget_before(step);
    return 0;
  });
}

std::int32_t gradcheck_payload(gradcheck_capture* capture, const char* path, std::int64_t step,
                               std::int64_t micro, std::int32_t stage, const std::int32_t* slots,
                               std::int32_t count, std::uint64_t budget_bytes,
                               std::uint8_t* written) {
  return guarded(capture, [&](gc::Session& session) {
    const gc::PayloadRequest request{required(path, "path"),
                                     {step, micro, stage_of(stage)},
                                     required_list(slots, count),
                                     budget_bytes};
    return session.payload(request, required_list(written, count));
  });
}

std::int32_t gradcheck_arrays(gradcheck_capture* capture, const char* path, const char* const* keys,
                              const gradcheck_view* arrays, std::int32_t count, char* digest) {
  return guarded(capture, [&](gc::Session& session) {
    if (count > kMaxArrays) throw std::invalid_argument("there are too many arrays");
    const auto names = required_list(keys, count);
    const auto views = required_list(arrays, count);
    std::vector<gc::NamedView> named;
    for (std::size_t i = 0; i < names.size(); ++i) {
      named.push_back({required(names[i], "a key"), gc::checked(&views[i])});
    }
    required(digest, "digest");
    const std::string hex = gradcheck::to_hex(session.arrays(required(path, "path"), named));
    std::memcpy(digest, hex.c_str(), hex.size() + 1);
    return 0;
  });
}

std::int32_t gradcheck_digest(gradcheck_capture* capture, const gradcheck_view* tensor, char* out) {
  return guarded(capture, [&](gc::Session& session) {
    required(out, "out");
    const std::string hex = gradcheck::to_hex(session.digest(gc::checked(tensor)));
    std::memcpy(out, hex.c_str(), hex.size() + 1);
    return 0;
  });
}

std::int32_t gradcheck_is_zero(gradcheck_capture* capture, const gradcheck_view* tensor) {
  return guarded(
      capture, [&](gc::Session& session) { return session.is_zero(gc::checked(tensor)) ? 1 : 0; });
}

std::int32_t gradcheck_receive(gradcheck_capture* capture, double timeout_s, char* out,
                               std::int32_t capacity) {
  return guarded(capture, [&](gc::Session& session) {
    const std::span<char> room = required_list(out, capacity);
    return give(session.receive(timeout_s), room);
  });
}

double gradcheck_seconds(const gradcheck_capture* capture) {
  if (capture == nullptr || capture->owner != ::getpid()) return 0;
  const std::lock_guard lock(capture->mutex);
  return std::chrono::duration<double>(capture->spent).count();
}
