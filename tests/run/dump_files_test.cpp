// SPDX-License-Identifier: Apache-2.0
#include "run/dump_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/errors.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DumpFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("gradcheck-dumps-") + info->name() + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string touch(const std::string& name) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path.string();
  }

  // "rank0" of "…/rank0.safetensors", the files of a rank joined by +.
  std::vector<std::string> found(const std::vector<std::string>& words) const {
    std::vector<std::string> ranks;
    for (const RankFiles& rank : find_dumps(words)) {
      std::string text;
      for (const std::string& path : rank.paths) {
        text += (text.empty() ? "" : "+") +
                std::filesystem::relative(path, folder_).replace_extension().string();
      }
      ranks.push_back(text);
    }
    return ranks;
  }

  std::string refusal(const std::vector<std::string>& words) const {
    try {
      find_dumps(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

TEST_F(DumpFiles, InAFolderAreARankEach) {
  for (const char* name : {"r10.npz", "r9.npz", "notes.txt", ".r3.npz"}) touch(name);
  EXPECT_THAT(found({folder_.string()}), ElementsAre("r9", "r10"));
}

TEST_F(DumpFiles, OfARanksFolderAreItsShards) {
  for (const char* name : {"r0/b.npz", "r0/a.npz", "r1/a.npz"}) touch(name);
  EXPECT_THAT(found({folder_.string()}), ElementsAre("r0/a+r0/b", "r1/a"));
}

TEST_F(DumpFiles, WithShardNumbersAreOneRank) {
  const std::vector<std::string> words = {touch("a-00001-of-00002.npz"),
                                          touch("a-00002-of-00002.npz"), touch("b.npz")};
  EXPECT_THAT(found(words), ElementsAre("a-00001-of-00002+a-00002-of-00002", "b"));
}

TEST_F(DumpFiles, ThatCountRanksAreNoShards) {
  for (const char* name : {"rank-00000-of-00002.npz", "rank-00001-of-00002.npz"}) touch(name);
  EXPECT_EQ(found({folder_.string()}).size(), 2U);
}

TEST_F(DumpFiles, InSeveralNamedOrdersKeepTheOneGiven) {
  const std::vector<std::string> words = {touch("b.npz"), touch("a.npz")};
  EXPECT_THAT(found(words), ElementsAre("b", "a"));
}

TEST_F(DumpFiles, ThatDoNotSayWhoseTheyAreAreRefused) {
  for (const char* name : {"r0s0.npz", "r0s1.npz", "r1s0.npz", "r1s1.npz"}) touch(name);
  EXPECT_THAT(refusal({folder_.string()}), HasSubstr("which rank is whose"));
  EXPECT_THAT(refusal({(folder_ / "q*").string()}), HasSubstr("no file matches"));
}

TEST_F(DumpFiles, OfWhichOneIsMissingAreRefused) {
  for (const char* name : {"r0.npz", "r2.npz"}) touch(name);
  EXPECT_THAT(refusal({folder_.string()}), HasSubstr("a file is missing"));
  EXPECT_THAT(refusal({touch("m-00002-of-00002.npz")}), HasSubstr("shard 1 of 2"));
}

}  // namespace
}  // namespace gradcheck
