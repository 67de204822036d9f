// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "evidence/read/safetensors.h"
#include "numeric/array_digest.h"
#include "numeric/kernel.h"
#include "support.h"

namespace gradcheck::capture {
namespace {

using testing::HasSubstr;

class Arrays : public CaptureTest {
 protected:
  std::int32_t write(const std::vector<const char*>& keys, const std::vector<gradcheck_view>& views,
                     const std::string& file = "arrays") {
    digest_.fill('x');
    return gradcheck_arrays(handle(), path(file).c_str(), keys.data(), views.data(),
                            static_cast<std::int32_t>(keys.size()), digest_.data());
  }
  std::string digest() const { return digest_.data(); }
  bool file_exists(const std::string& file = "arrays") const {
    return std::filesystem::exists(path(file)) || std::filesystem::exists(path(file) + ".tmp");
  }

  std::array<char, 33> digest_{};
};

Digest digest_in(const SafetensorsFile& file) {
  std::vector<ArrayStamp> stamps;
  for (const auto& [key, view] : file.tensors()) {
    const Digest digest = measure(view.dtype, view.bytes, KernelMode::digest_only).digest;
    stamps.push_back({key, view.dtype, view.shape, digest});
  }
  return digest_of(stamps);
}

TEST_F(Arrays, AreWrittenRowMajorWithTheDigestOfThemAll) {
  const Tensor<float> fresh = wave(6);
  const std::int64_t sizes[] = {2, 3};
  const std::int64_t turned[] = {1, 2};
  const Tensor<std::uint8_t> mask{{1, 0, 1, 1, 1, 0}, {2, 3}, DType::u8};
  const gradcheck_view old{fresh.elements.data(), sizes, turned, 2, 1, 0};
  EXPECT_EQ(write({"new", "old", "mask"}, {fresh.view(), old, mask.view()}), 0) << error();
  const SafetensorsFile file(path("arrays"));
  EXPECT_EQ(digest(), to_hex(digest_in(file)));
  const TensorView& view = file.tensors().at("old");
  std::array<float, 6> values{};
  std::memcpy(values.data(), view.bytes.data(), sizeof values);
  const auto& e = fresh.elements;
  EXPECT_EQ(values, (std::array<float, 6>{e[0], e[2], e[4], e[1], e[3], e[5]}));
  EXPECT_EQ(file.tensors().at("mask").dtype, DType::u8);
}

TEST_F(Arrays, WithoutElementsAreArraysToo) {
  const std::int64_t sizes[] = {0, 3};
  EXPECT_EQ(write({"new"}, {{nullptr, sizes, nullptr, 2, 1, 0}}), 0) << error();
  EXPECT_EQ(SafetensorsFile(path("arrays")).tensors().at("new").bytes.size(), 0U);
}

TEST_F(Arrays, AreRefusedWholeAndLeaveNoFile) {
  const Tensor<float> good = wave(6);
  const std::int64_t sizes[] = {6};
  const gradcheck_view absent{nullptr, sizes, nullptr, 1, 1, 0};
  const gradcheck_view hidden{good.elements.data(), sizes, nullptr, 1, 1, 1};
  const gradcheck_view complex128{good.elements.data(), sizes, nullptr, 1, 11, 0};
  const gradcheck_view unknown{good.elements.data(), sizes, nullptr, 1, 99, 0};
  const std::string long_key(300, 'k');
  for (const gradcheck_view& bad : {absent, hidden, complex128, unknown}) {
    EXPECT_EQ(write({"new", "old"}, {good.view(), bad}), -1);
  }
  EXPECT_EQ(write({"new", "new"}, {good.view(), good.view()}), -1);
  EXPECT_THAT(error(), HasSubstr("new is there twice"));
  EXPECT_EQ(write({"new", nullptr}, {good.view(), good.view()}), -1);
  EXPECT_EQ(write({""}, {good.view()}), -1);
  EXPECT_EQ(write({long_key.c_str()}, {good.view()}), -1);
  EXPECT_EQ(write({}, {}), -1);
  EXPECT_FALSE(file_exists());
}

TEST_F(Arrays, NullArgumentsAndHugeCountsAreRefused) {
  const Tensor<float> good = wave(6);
  const gradcheck_view view = good.view();
  const char* key = "new";
  const std::string file = path("arrays");
  char* out = digest_.data();
  EXPECT_EQ(gradcheck_arrays(handle(), nullptr, &key, &view, 1, out), -1);
  EXPECT_EQ(gradcheck_arrays(handle(), file.c_str(), nullptr, &view, 1, out), -1);
  EXPECT_EQ(gradcheck_arrays(handle(), file.c_str(), &key, nullptr, 1, out), -1);
  EXPECT_EQ(gradcheck_arrays(handle(), file.c_str(), &key, &view, 1, nullptr), -1);
  EXPECT_EQ(gradcheck_arrays(handle(), file.c_str(), &key, &view, 65, out), -1);
  EXPECT_EQ(gradcheck_arrays(handle(), file.c_str(), &key, &view, -1, out), -1);
  EXPECT_EQ(gradcheck_arrays(nullptr, file.c_str(), &key, &view, 1, out), -1);
  EXPECT_FALSE(file_exists());
}

TEST_F(Arrays, AFileThatCannotBeWrittenClosesNothing) {
  const Tensor<float> good = wave(6);
  EXPECT_EQ(write({"new"}, {good.view()}, "no/such/file"), -1);
  EXPECT_THAT(error(), HasSubstr("cannot write"));
  EXPECT_EQ(write({"new"}, {good.view()}), 0);
}

TEST_F(Arrays, AreRefusedAfterBye) {
  const Tensor<float> good = wave(6);
  gradcheck_send(handle(), kHello);
  gradcheck_bye(handle(), 0);
  EXPECT_EQ(write({"new"}, {good.view()}), -1);
  EXPECT_FALSE(file_exists());
}

}  // namespace
}  // namespace gradcheck::capture
