// SPDX-License-Identifier: Apache-2.0
#include "evidence/read/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/read_any.h"

namespace gradcheck {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Input {
  std::string name;
  Bytes bytes;
};

// Every file of the fuzzer's corpus: right ones are called right-*, all others must be refused.
std::vector<Input> corpus() {
  std::vector<Input> inputs;
  const std::string folder = std::string(GRADCHECK_SOURCE_DIR) + "/tests/fuzz/corpus";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.push_back(
        {entry.path().filename().string(), Bytes(std::istreambuf_iterator<char>(file), {})});
  }
  std::sort(inputs.begin(), inputs.end(),
            [](const Input& a, const Input& b) { return a.name < b.name; });
  return inputs;
}

TEST(ArrayFile, TheCorpusIsReadOrRefusedAsItsNamesSay) {
  const fuzz::Folder folder;
  std::size_t right = 0;
  for (const Input& input : corpus()) {
    const bool wanted = input.name.starts_with("right-");
    EXPECT_EQ(fuzz::read_any(input.bytes, folder.path()), wanted) << input.name;
    right += wanted ? 1 : 0;
  }
  EXPECT_GE(right, 4);
}

TEST(ArrayFile, AnyByteMayBeWrongAndAnyEndMissing) {
  const fuzz::Folder folder;
  std::mt19937 random(1);
  for (const Input& input : corpus()) {
    for (std::size_t i = 1; i < input.bytes.size(); ++i) {
      Bytes changed = input.bytes;
      changed[i] ^= static_cast<std::uint8_t>(1 + random() % 255);
      fuzz::read_any(changed, folder.path());
      fuzz::read_any(std::span(input.bytes).first(i), folder.path());
    }
  }
}

TEST(ArrayFile, AnArchiveMayNotUnpackToMoreThanIsAllowed) {
  const fuzz::Folder folder;
  const std::string path = folder.path() + "/a.npz";
  for (const Input& input : corpus()) {
    if (input.name != "right-npz") continue;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(input.bytes.data()) + 1,
               static_cast<std::streamsize>(input.bytes.size() - 1));
  }
  EXPECT_NO_THROW(open_array_file(path));
  EXPECT_NO_THROW(open_array_file(path, 10'000));
  EXPECT_THROW(open_array_file(path, 10), InfrastructureError);
}

// "" where the text is read, otherwise why not.
std::string refusal_of(const std::string& text, ArrayFile* file = nullptr) {
  const fuzz::Folder folder;
  const std::string path = folder.path() + "/a.jsonl";
  std::ofstream(path) << text;
  try {
    ArrayFile read = open_array_file(path);
    if (file != nullptr) *file = std::move(read);
    return "";
  } catch (const InfrastructureError& error) {
    return error.what();
  }
}

TEST(ArrayFile, ARowOfJsonMayBeEmpty) {
  ArrayFile file;
  const char* rows =
      "{\"old\":[],\"tools\":[]}\n{\"old\":[-1,-2],\"tools\":[\"x\"]}\n{\"old\":[],\"more\":[]}\n";
  ASSERT_EQ(refusal_of(rows, &file), "");
  ASSERT_EQ(file.arrays.size(), 1U);  // `tools` and `more` are no lists of numbers
  EXPECT_EQ(file.arrays.at("old").offsets, (std::vector<std::size_t>{0, 0, 2, 2}));
}

TEST(ArrayFile, ARowOfJsonMayNotLackWhatOthersHave) {
  EXPECT_THAT(refusal_of("{\"old\":[-1]}\n{\"new\":[]}\n"), testing::HasSubstr("'old' is missing"));
  EXPECT_THAT(refusal_of("{\"old\":[]}\n{\"old\":[-1]}\n{\"old\":[\"x\"]}\n"),
              testing::HasSubstr("'old' is missing"));
  EXPECT_THAT(refusal_of("{\"old\":[-1]}\n{\"old\":[-1],\"new\":[-1]}\n"),
              testing::HasSubstr("'new' is missing in earlier rows"));
  EXPECT_THAT(refusal_of("{\"old\":[],\"new\":[]}\n{\"new\":[-1]}\n{\"old\":[-1],\"new\":[1]}\n"),
              testing::HasSubstr("'old' is missing in earlier rows"));
}

TEST(ArrayFile, ViewsLiveAsLongAsTheFile) {
  const fuzz::Folder folder;
  const std::string path = folder.path() + "/a.jsonl";
  std::ofstream(path) << "{\"old\":[-1,-2],\"new\":[-3]}\n{\"old\":[-4],\"new\":[-5,null]}\n";
  ArrayFile file = open_array_file(path);
  const ArrayFile moved = std::move(file);
  const NamedArray& old = moved.arrays.at("old");
  EXPECT_EQ(old.offsets, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(old.dtype, DType::f64);
  EXPECT_EQ(old.bytes.size(), 3 * sizeof(double));
  EXPECT_EQ(moved.arrays.at("new").offsets, (std::vector<std::size_t>{0, 1, 3}));
}

}  // namespace
}  // namespace gradcheck
