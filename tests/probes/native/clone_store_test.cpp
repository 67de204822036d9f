// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/clone_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

namespace fs = std::filesystem;

class PayloadOf : public OneThread {
 protected:
  void SetUp() override {
    OneThread::SetUp();
    directory =
        fs::temp_directory_path() /
        ("gradcheck-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(directory);
    fs::create_directories(directory / "payload");
    clones.keep(0, Stage::reduced, "policy/weight", at::zeros({1000}));
  }
  void TearDown() override { fs::remove_all(directory); }
  Payload write() {
    const Want want{0, 0, Stage::reduced, {"policy/weight"}, 1 << 20};
    return write_payload({&clones}, want, directory.string(), 0);
  }

  fs::path directory;
  fs::path file = "payload/rank-0.step-0.reduced.safetensors";
  CloneStore clones;
};

void expect_nothing_written(const Payload& payload) {
  EXPECT_TRUE(payload.record.truncated);
  EXPECT_EQ(payload.record.file, "");
  EXPECT_EQ(payload.record.bytes, 0u);
  EXPECT_THAT(payload.record.names, testing::IsEmpty());
}

TEST_F(PayloadOf, NamesItsFileAndWhatIsInIt) {
  const Payload payload = write();
  EXPECT_EQ(payload.problem, "");
  EXPECT_EQ(payload.record.file, file.string());
  EXPECT_EQ(payload.record.bytes, 4000u);
  EXPECT_THAT(payload.record.names, testing::ElementsAre("policy/weight"));
  EXPECT_FALSE(payload.record.truncated);
  EXPECT_TRUE(fs::exists(directory / file));
}

TEST_F(PayloadOf, AFullDiskIsAnAnswerNotAnException) {
  const fs::path temporary = (directory / file).string() + ".tmp";
  fs::create_symlink("/dev/full", temporary);
  const Payload payload = write();
  expect_nothing_written(payload);
  EXPECT_THAT(payload.problem, testing::HasSubstr("No space left on device"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(temporary)));
  EXPECT_FALSE(fs::exists(directory / file));
}

TEST_F(PayloadOf, ARunDirectoryThatHasGoneIsNotMadeAgain) {
  fs::remove_all(directory);
  const Payload payload = write();
  expect_nothing_written(payload);
  EXPECT_THAT(payload.problem, testing::HasSubstr("No such file or directory"));
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(PayloadOf, SpaceForACopyLastsFromStepToStep) {
  const at::Tensor first = clones.space(0, Stage::local, "weight", at::zeros({4}));
  clones.clear();
  EXPECT_TRUE(clones.space(0, Stage::local, "weight", at::zeros({4})).is_same(first));
  EXPECT_FALSE(clones.space(0, Stage::reduced, "weight", at::zeros({4})).is_same(first));
  EXPECT_EQ(clones.space(0, Stage::local, "weight", at::zeros({5})).size(0), 5);
}

}  // namespace
}  // namespace gradcheck::native
