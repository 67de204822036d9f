// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "evidence/read/reader.h"
#include "model/record.h"
#include "probes/python/capture/capture.h"

namespace gradcheck::capture {

struct Close {
  void operator()(gradcheck_capture* capture) const { gradcheck_close(capture); }
};
using Handle = std::unique_ptr<gradcheck_capture, Close>;

// A row-major tensor of its own elements, as a caller of the ABI describes it.
template <typename T>
struct Tensor {
  std::vector<T> elements;
  std::vector<std::int64_t> sizes;
  DType dtype = DType::f32;

  gradcheck_view view() const {
    return {elements.data(),
            sizes.data(),
            nullptr,
            static_cast<std::int32_t>(sizes.size()),
            static_cast<std::int32_t>(dtype),
            0};
  }
};

inline Tensor<float> floats(std::vector<float> elements) {
  const auto size = static_cast<std::int64_t>(elements.size());
  return {std::move(elements), {size}, DType::f32};
}

// Values that differ everywhere, of both signs.
inline Tensor<float> wave(std::int64_t size, float scale = 1) {
  std::vector<float> elements(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = scale * (static_cast<float>(i * 37 % 101) - 50.5F) / 7;
  }
  return floats(std::move(elements));
}

inline constexpr const char* kHello =
    R"({"type":"hello","schema":"evidence-1","run":"run","world":"w","rank":0,"world_size":1})";

// A folder of its own for each test, and a handle that writes to a file in it.
class CaptureTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("gc-" + std::string(info->name()).substr(0, 40) + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    capture_.reset(gradcheck_open_file(path("lines").c_str()));
    ASSERT_NE(capture_, nullptr) << gradcheck_error(nullptr);
  }
  void TearDown() override {
    capture_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  gradcheck_capture* handle() const { return capture_.get(); }
  std::string error() const { return gradcheck_error(handle()); }

  std::int32_t slot(const char* name) {
    const std::int32_t slot = gradcheck_slot(handle(), "Net", name, nullptr);
    EXPECT_GE(slot, 0) << error();
    return slot;
  }
  template <typename T>
  std::int32_t record(std::int32_t slot, std::int64_t step, Stage stage, const Tensor<T>& tensor,
                      bool copy = false) {
    const gradcheck_view view = tensor.view();
    return gradcheck_record(handle(), slot, step, 0, static_cast<std::int32_t>(stage),
                            static_cast<std::int32_t>(TensorKind::grad), &view, -1, copy);
  }
  std::int32_t local(std::int32_t slot, const Tensor<float>& gradient, bool copy = false) {
    const gradcheck_view view = gradient.view();
    return gradcheck_local(handle(), slot, &view, copy);
  }
  std::int32_t close_local(std::int64_t step, std::vector<std::int32_t> slots) {
    return gradcheck_close_local(handle(), step, 0, slots.data(),
                                 static_cast<std::int32_t>(slots.size()));
  }
  std::int32_t mark(std::int64_t step, Stage stage) {
    return gradcheck_mark(handle(), "Net", step, 0, static_cast<std::int32_t>(stage));
  }

  // Everything written so far as the front reads it. Refusals fail the test.
  EvidenceTable read_back() {
    EXPECT_EQ(gradcheck_flush(handle()), 0) << error();
    return read_file();
  }
  EvidenceTable read_file() {
    EvidenceReader reader("run", 1);
    std::ifstream lines(path("lines"));
    for (std::string line; std::getline(lines, line);) reader.accept(0, line);
    EvidenceTable table = std::move(reader.table());
    table.finish();
    EXPECT_EQ(table.refused(), std::vector<std::string>{});
    return table;
  }
  // The entry of "Net"'s tensor `name`; a failure and an empty one where there is none.
  static Entry entry(const EvidenceTable& table, std::int64_t step, Stage stage,
                     const std::string& name, TensorKind kind = TensorKind::grad) {
    const auto model = table.find_text("Net");
    const auto tensor = table.find_text(name);
    if (model && tensor) {
      const RowKey key{step, 0, stage, kind, *model, *tensor};
      if (table.has(key)) return table.entries(key)[0];
    }
    ADD_FAILURE() << name << " has no record";
    return {};
  }
  static bool is_closed(const EvidenceTable& table, std::int64_t step, Stage stage) {
    const auto model = table.find_text("Net");
    return model && table.stage_closed(0, *model, step, 0, stage);
  }

 private:
  std::filesystem::path folder_;
  Handle capture_;
};

// The front's end of one connection over a Unix socket.
class Front {
 public:
  explicit Front(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, generic, sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
  }
  ~Front() {
    hang_up();
    ::close(listener_);
  }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  void accept() { connection_ = ::accept(listener_, nullptr, nullptr); }
  void hang_up() {
    if (connection_ >= 0) ::close(connection_);
    connection_ = -1;
  }
  void say(const std::string& text) {
    EXPECT_EQ(::send(connection_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Until `lines` lines have come or the rank has closed.
  std::string hear(int lines) {
    std::string text;
    std::array<char, 4096> buffer;
    while (std::count(text.begin(), text.end(), '\n') < lines) {
      const ssize_t got = ::read(connection_, buffer.data(), buffer.size());
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int listener_ = -1;
  int connection_ = -1;
};

}  // namespace gradcheck::capture
