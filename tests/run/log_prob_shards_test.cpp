// SPDX-License-Identifier: Apache-2.0
#include "run/log_prob_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "numeric/array_digest.h"
#include "numeric/kernel.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::string bytes;
};
using Arrays = std::map<std::string, Array>;

template <typename T>
Array array_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  return {dtype, std::move(shape), std::string(bytes, values.size() * sizeof(T))};
}

Array floats(const std::vector<float>& values) {
  return array_of(DType::f32, {2, static_cast<std::int64_t>(values.size()) / 2}, values);
}

std::string shape_text(const Array& array) {
  std::string text;
  for (const std::int64_t extent : array.shape) text += "," + std::to_string(extent);
  return "[" + text.substr(text.empty() ? 0 : 1) + "]";
}

std::span<const std::byte> bytes_of(const Array& array) {
  return std::as_bytes(std::span(array.bytes));
}

// A file and the record that belongs to it.
class LogProbShards : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("logp-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "payload");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& file, const Arrays& arrays) const {
    std::string header = "{", data;
    for (const auto& [key, array] : arrays) {
      header += header.size() > 1 ? "," : "";
      header += "\"" + key + "\":{\"dtype\":\"" + std::string(safetensors_name_of(array.dtype)) +
                "\",\"shape\":" + shape_text(array) + ",\"data_offsets\":[" +
                std::to_string(data.size()) + "," +
                std::to_string(data.size() + array.bytes.size()) + "]}";
      data += array.bytes;
    }
    header += "}";
    const std::uint64_t length = header.size();
    std::ofstream out(folder_ / file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << data;
  }

  static LogProbRecord record_of(const std::string& file, const Arrays& arrays) {
    LogProbRecord record;
    record.name = "train";
    record.source = "gradcheck.log_probs";
    record.file = file;
    std::vector<ArrayStamp> stamps;
    for (const auto& [key, array] : arrays) {
      record.keys.push_back(key);
      record.bytes += array.bytes.size();
      stamps.push_back({key, array.dtype, array.shape,
                        measure(array.dtype, bytes_of(array), KernelMode::digest_only).digest});
    }
    record.digest = to_hex(digest_of(stamps));
    record.updates = 0;
    return record;
  }

  LogProbRecord give(int rank, const Arrays& arrays, const std::string& file = "payload/a") {
    write(file, arrays);
    LogProbRecord record = record_of(file, arrays);
    table_.rank(rank).log_probs.push_back(record);
    return record;
  }

  LogProbRecord& last(int rank) { return table_.rank(rank).log_probs.back(); }
  std::vector<LogProbSet> read() { return read_log_probs(folder_.string(), table_); }
  std::string refusal() {
    read();
    return table_.refused().empty() ? "" : table_.refused().front();
  }

  std::filesystem::path folder_;
  EvidenceTable table_{2};
};

Arrays whole() {
  return {{"new", floats({-1, -2, -3, -4})},
          {"old", array_of<std::uint16_t>(DType::bf16, {2, 2}, {0xbf80, 0xc000, 0xc040, 0xc080})},
          {"mask", array_of<std::uint8_t>(DType::u8, {2, 2}, {1, 0, 7, 1})},
          {"ref", floats({-5, -6, -7, -8})},
          {"token_ids", array_of<std::int64_t>(DType::i64, {2, 2}, {10, 11, 12, 13})}};
}

TEST_F(LogProbShards, HoldWhatWasWritten) {
  give(0, whole());
  give(1, whole(), "payload/b");
  const std::vector<LogProbSet> sets = read();
  EXPECT_THAT(table_.refused(), IsEmpty());
  ASSERT_THAT(sets, SizeIs(1));
  EXPECT_EQ(sets[0].name, "train");
  EXPECT_EQ(sets[0].source, "gradcheck.log_probs");
  EXPECT_THAT(sets[0].missing, IsEmpty());
  ASSERT_THAT(sets[0].shards, SizeIs(2));
  const LogProbShard& shard = sets[0].shards[1];
  EXPECT_EQ(shard.rank, 1);
  EXPECT_THAT(shard.offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(shard.new_values, ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(shard.old_values, ElementsAre(-1, -2, -3, -4));
  EXPECT_EQ(shard.old_dtype, DType::bf16);
  EXPECT_EQ(shard.new_dtype, DType::f32);
  EXPECT_THAT(shard.mask, ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(shard.ref, ElementsAre(-5, -6, -7, -8));
  EXPECT_THAT(shard.token_ids, ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(shard.rollout, IsEmpty());
  EXPECT_EQ(shard.updates, std::optional<std::int64_t>(0));
}

TEST_F(LogProbShards, AreSortedByStepAndName) {
  give(0, whole());
  last(0).step = 2;
  give(0, whole(), "payload/b");
  last(0).name = "critic";
  give(1, whole(), "payload/c");
  const std::vector<LogProbSet> sets = read();
  ASSERT_THAT(sets, SizeIs(3));
  EXPECT_EQ(sets[0].name, "critic");
  EXPECT_THAT(sets[0].missing, ElementsAre(1));
  EXPECT_EQ(sets[1].name, "train");
  EXPECT_THAT(sets[1].missing, ElementsAre(0));
  EXPECT_EQ(sets[2].step, 2);
}

TEST_F(LogProbShards, OldThatIsNewHasNoArray) {
  Arrays arrays = whole();
  arrays.erase("old");
  give(0, arrays);
  last(0).aliased = true;
  const std::vector<LogProbSet> sets = read();
  EXPECT_THAT(table_.refused(), IsEmpty());
  EXPECT_TRUE(sets[0].shards[0].aliased);
  EXPECT_THAT(sets[0].shards[0].old_values, ElementsAre(-1, -2, -3, -4));
}

TEST_F(LogProbShards, WhatWasNotWrittenIsToldWithItsReason) {
  LogProbRecord record;
  record.name = "train";
  record.text = "the budget is spent";
  table_.rank(1).log_probs.push_back(record);
  const std::vector<LogProbSet> sets = read();
  ASSERT_THAT(sets, SizeIs(1));
  EXPECT_THAT(sets[0].unwritten, ElementsAre(std::pair(1, std::string("the budget is spent"))));
  EXPECT_THAT(sets[0].missing, ElementsAre(0));
  EXPECT_THAT(table_.refused(), IsEmpty());
}

TEST_F(LogProbShards, FilesOutsideTheRunAreRefused) {
  for (const char* file : {"../a", "/etc/hostname", "payload/../../a"}) {
    EvidenceTable table(1);
    LogProbRecord record = record_of(file, whole());
    table.rank(0).log_probs.push_back(record);
    read_log_probs(folder_.string(), table);
    EXPECT_THAT(table.refused(), ElementsAre(HasSubstr("file lies outside the run"))) << file;
  }
}

TEST_F(LogProbShards, AFileThatIsMissingOrNoneIsRefused) {
  give(0, whole());
  std::filesystem::remove(folder_ / "payload/a");
  EXPECT_THAT(refusal(), HasSubstr("rank 0, log-probs: "));
}

TEST_F(LogProbShards, OtherElementsAreRefused) {
  give(0, whole());
  Arrays other = whole();
  other.at("new") = floats({-1, -2, -3, -4.5F});
  write("payload/a", other);
  EXPECT_THAT(refusal(), HasSubstr("does not hold the arrays that were recorded"));
}

TEST_F(LogProbShards, OtherKeysAreRefused) {
  give(0, whole());
  std::erase(last(0).keys, "ref");
  EXPECT_THAT(refusal(), HasSubstr("ref was not recorded"));
}

TEST_F(LogProbShards, AnotherTypeOfTheSameBitsIsRefused) {
  give(0, whole());
  Arrays other = whole();
  other.at("old").dtype = DType::f16;
  write("payload/a", other);
  EXPECT_THAT(refusal(), HasSubstr("does not hold the arrays that were recorded"));
}

// What a producer may say truthfully and still makes no sense.
TEST_F(LogProbShards, ArraysThatCannotBeJudgedAreRefused) {
  const auto without = [](const char* key) {
    Arrays arrays = whole();
    arrays.erase(key);
    return arrays;
  };
  const auto with = [](const char* key, Array array) {
    Arrays arrays = whole();
    arrays[key] = std::move(array);
    return arrays;
  };
  const std::vector<std::pair<Arrays, std::string>> cases = {
      {without("new"), "new is missing"},
      {without("old"), "old is missing"},
      {with("old", array_of<float>(DType::f32, {4}, {1, 2, 3, 4})), "another shape than new"},
      {with("mask", floats({1, 1, 1, 1})), "mask is of another type"},
      {with("token_ids", floats({1, 1, 1, 1})), "token_ids is of another type"},
      {with("ref", array_of<std::int64_t>(DType::i64, {2, 2}, {1, 2, 3, 4})),
       "ref holds no floating-point numbers"},
  };
  for (const auto& [arrays, why] : cases) {
    table_ = EvidenceTable(2);
    give(0, arrays);
    EXPECT_THAT(refusal(), HasSubstr(why));
  }
}

TEST_F(LogProbShards, OneFileForTwoRecordsIsRefused) {
  give(0, whole());
  give(1, whole());
  EXPECT_THAT(refusal(), HasSubstr("was named before"));
}

TEST_F(LogProbShards, OneDimensionIsRefusedAndRowsWithoutTokensTakeNoMemory) {
  give(0, {{"new", array_of<float>(DType::f32, {4}, {1, 2, 3, 4})},
           {"old", array_of<float>(DType::f32, {4}, {1, 2, 3, 4})}});
  EXPECT_THAT(refusal(), HasSubstr("[rows, tokens]"));
  table_ = EvidenceTable(2);
  const std::int64_t many = std::int64_t{1} << 50;
  give(0, {{"new", array_of<float>(DType::f32, {many, 0}, {})},
           {"old", array_of<float>(DType::f32, {many, 0}, {})}});
  EXPECT_THAT(read()[0].shards[0].offsets, ElementsAre(0));
}

}  // namespace
}  // namespace gradcheck
