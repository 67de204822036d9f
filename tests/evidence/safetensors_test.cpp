// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "evidence/write/safetensors.h"
#include "model/errors.h"

namespace gradcheck {
namespace {

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("gradcheck-st-") + info->name() + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "file.safetensors").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_raw(std::string_view header, std::string_view data) {
    std::ofstream file(path_, std::ios::binary);
    const std::uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header << data;
  }
  void expect_refused(std::string_view header, std::string_view data, const char* why) {
    write_raw(header, data);
    try {
      SafetensorsFile file(path_);
      FAIL() << "accepted: " << header;
    } catch (const InfrastructureError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(why)) << header;
    }
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::array<float, 6> a = {1, 2, 3, 4, 5, 6};
  const std::array<std::uint16_t, 1> b = {0x3f80};
  write_safetensors(path_, std::vector<NamedTensor>{
                               {"policy/a \"q\"", DType::f32, {2, 3}, std::as_bytes(std::span(a))},
                               {"policy/b", DType::bf16, {}, std::as_bytes(std::span(b))},
                               {"policy/empty", DType::f32, {0, 4}, {}}});
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), 3U);
  const TensorView& read = file.tensors().at("policy/a \"q\"");
  EXPECT_EQ(read.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(read.bytes.data(), a.data(), sizeof a), 0);
  EXPECT_EQ(file.tensors().at("policy/b").dtype, DType::bf16);
  EXPECT_TRUE(file.tensors().at("policy/empty").bytes.empty());
}

TEST_F(Safetensors, HostileHeadersAreRefusedWithAReason) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", "12345678",
                 "disagree");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "1234", "outside");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "12345678",
                 "outside");
  expect_refused(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "1234", "F31");
  expect_refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234", "counts");
  expect_refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                 "", "too large");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "1234", "two numbers");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
                 "123456", "overlap");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                 "12345678", "twice");
  expect_refused("[1]", "", "not JSON");
  expect_refused(std::string(100'000, '['), "", "not JSON");
}

TEST_F(Safetensors, ALyingLengthIsRefused) {
  std::ofstream(path_, std::ios::binary) << std::string(8, '\xff') << "{}";
  EXPECT_THROW(SafetensorsFile file(path_), InfrastructureError);
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << "abc";
  EXPECT_THROW(SafetensorsFile file(path_), InfrastructureError);
  EXPECT_THROW(SafetensorsFile file(path_ + ".none"), InfrastructureError);
}

TEST_F(Safetensors, FlippedBytesNeverCrash) {
  const std::array<float, 4> a = {1, 2, 3, 4};
  write_safetensors(
      path_, std::vector<NamedTensor>{{"m/a", DType::f32, {4}, std::as_bytes(std::span(a))}});
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bent = whole;
    for (int k = 0; k < 3; ++k) bent[random() % bent.size()] = static_cast<char>(random());
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bent;
    try {
      SafetensorsFile file(path_);
      for (const auto& [key, view] : file.tensors()) {
        for (const std::byte byte : view.bytes) EXPECT_LE(static_cast<int>(byte), 255);
      }
    } catch (const InfrastructureError&) {
    }
  }
}

TEST_F(Safetensors, AnUnwritablePathSaysWhy) {
  EXPECT_THROW(write_safetensors((folder_ / "no/such/folder").string(), {}), InfrastructureError);
}

}  // namespace
}  // namespace gradcheck
