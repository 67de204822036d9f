// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "evidence/read/safetensors.h"
#include "numeric/kernel.h"
#include "probes/python/capture/copies.h"
#include "support.h"

namespace gradcheck::capture {
namespace {

using testing::ElementsAre;

class Payload : public CaptureTest {
 protected:
  void SetUp() override {
    CaptureTest::SetUp();
    gradcheck_send(handle(), kHello);
    gradcheck_keep_budget(handle(), 1 << 20);
  }
  std::int32_t write(std::int64_t step, Stage stage, const std::vector<std::int32_t>& slots,
                     std::uint64_t budget = 1 << 20) {
    written_.assign(slots.size(), 9);
    return gradcheck_payload(handle(), path("payload").c_str(), step, 0,
                             static_cast<std::int32_t>(stage), slots.data(),
                             static_cast<std::int32_t>(slots.size()), budget, written_.data());
  }
  Digest digest_in_file(const std::string& key) const {
    const SafetensorsFile file(path("payload"));
    const auto found = file.tensors().find(key);
    if (found == file.tensors().end()) return {};
    return measure(found->second.dtype, found->second.bytes, KernelMode::digest_only).digest;
  }
  bool file_exists() const { return std::filesystem::exists(path("payload")); }

  std::vector<std::uint8_t> written_;
};

TEST_F(Payload, HoldsExactlyWhatWasRecorded) {
  const std::int32_t weight = slot("weight");
  const std::int32_t turned = slot("turned");
  Tensor<float> values = wave(20'000);
  const std::int64_t sizes[] = {100, 200};
  const std::int64_t strides[] = {1, 100};
  const gradcheck_view view{values.elements.data(), sizes, strides, 2, 1, 0};
  EXPECT_EQ(record(weight, 0, Stage::reduced, values, true), 0);
  EXPECT_EQ(gradcheck_record(handle(), turned, 0, 0, 2, 1, &view, -1, 1), 0);
  values.elements.assign(values.elements.size(), 0);  // the job goes on
  EXPECT_EQ(write(0, Stage::reduced, {turned, weight}), 2) << error();
  EXPECT_THAT(written_, ElementsAre(1, 1));
  const EvidenceTable table = read_back();
  EXPECT_EQ(digest_in_file("Net/weight"), entry(table, 0, Stage::reduced, "weight").digest);
  EXPECT_EQ(digest_in_file("Net/turned"), entry(table, 0, Stage::reduced, "turned").digest);
  EXPECT_EQ(SafetensorsFile(path("payload")).tensors().at("Net/turned").shape,
            (std::vector<std::int64_t>{100, 200}));
}

TEST_F(Payload, OneCopyServesReducedAndAnEqualFinal) {
  gradcheck_keep_budget(handle(), 4 * 100);
  const std::int32_t weight = slot("weight");
  const Tensor<float> values = wave(100);
  record(weight, 0, Stage::reduced, values, true);
  record(weight, 0, Stage::final, values, true);
  EXPECT_EQ(write(0, Stage::final, {weight}), 1);
  EXPECT_EQ(digest_in_file("Net/weight"), entry(read_back(), 0, Stage::final, "weight").digest);
}

TEST_F(Payload, AFinalThatDiffersHasItsOwnCopy) {
  const std::int32_t weight = slot("weight");
  record(weight, 0, Stage::reduced, wave(100), true);
  record(weight, 0, Stage::final, wave(100, 0.1F), true);
  EXPECT_EQ(write(0, Stage::final, {weight}), 1);
  EXPECT_EQ(digest_in_file("Net/weight"), entry(read_back(), 0, Stage::final, "weight").digest);
}

TEST_F(Payload, ASingleLocalIsKeptAndAMergedOneIsNot) {
  const std::int32_t single = slot("single");
  const std::int32_t merged = slot("merged");
  local(single, wave(100), true);
  local(merged, wave(100), true);
  local(merged, wave(100), true);
  close_local(0, {single, merged});
  EXPECT_EQ(write(0, Stage::local, {merged, single}), 1);
  EXPECT_THAT(written_, ElementsAre(0, 1));
  EXPECT_EQ(digest_in_file("Net/single"), entry(read_back(), 0, Stage::local, "single").digest);
}

TEST_F(Payload, NothingKeptMakesNoFile) {
  const std::int32_t weight = slot("weight");
  record(weight, 0, Stage::reduced, wave(100), false);
  EXPECT_EQ(write(0, Stage::reduced, {weight}), 0);
  EXPECT_THAT(written_, ElementsAre(0));
  EXPECT_FALSE(file_exists());
  gradcheck_keep_budget(handle(), 0);
  record(weight, 1, Stage::reduced, wave(100), true);
  EXPECT_EQ(write(1, Stage::reduced, {weight}), 0);
}

TEST_F(Payload, StopsWhereItsBudgetEnds) {
  const std::int32_t a = slot("a");
  const std::int32_t b = slot("b");
  const std::int32_t c = slot("c");
  record(a, 0, Stage::reduced, wave(10), true);
  record(b, 0, Stage::reduced, wave(100), true);
  record(c, 0, Stage::reduced, wave(1), true);
  EXPECT_EQ(write(0, Stage::reduced, {a, b, c}, 60), 1);
  EXPECT_THAT(written_, ElementsAre(1, 0, 0));
  EXPECT_EQ(write(0, Stage::reduced, {a, c}, 42), 1) << "together they need 44";
  EXPECT_EQ(write(0, Stage::reduced, {a, a}), 1);
  EXPECT_THAT(written_, ElementsAre(1, 0));
}

TEST_F(Payload, ForgottenStepsGiveTheirMemoryToLaterOnes) {
  gradcheck_keep_budget(handle(), 400);
  const std::int32_t weight = slot("weight");
  record(weight, 0, Stage::reduced, wave(100), true);
  record(weight, 1, Stage::reduced, wave(100), true);  // does not fit: recorded, not kept
  EXPECT_EQ(write(1, Stage::reduced, {weight}), 0);
  gradcheck_forget(handle(), 1);
  EXPECT_EQ(write(0, Stage::reduced, {weight}), 0);
  record(weight, 2, Stage::reduced, wave(100, 2), true);
  EXPECT_EQ(write(2, Stage::reduced, {weight}), 1);
  EXPECT_EQ(digest_in_file("Net/weight"), entry(read_back(), 2, Stage::reduced, "weight").digest);
}

TEST_F(Payload, AFileThatCannotBeWrittenClosesNothing) {
  const std::int32_t weight = slot("weight");
  record(weight, 0, Stage::reduced, wave(10), true);
  std::uint8_t written = 0;
  EXPECT_EQ(gradcheck_payload(handle(), path("no/such/file").c_str(), 0, 0, 2, &weight, 1, 1 << 20,
                              &written),
            -1);
  EXPECT_THAT(error(), testing::HasSubstr("cannot write"));
  EXPECT_EQ(written, 0);
  EXPECT_EQ(write(0, Stage::reduced, {weight}), 1);
}

TEST(Pool, UsesTheSameMemoryAgain) {
  Pool pool;
  pool.set_budget(1000);
  const auto* first = pool.take(600)->bytes().data();
  const auto again = pool.take(600);
  EXPECT_EQ(again->bytes().data(), first);
  EXPECT_EQ(pool.take(600), nullptr);
  EXPECT_NE(pool.take(0), nullptr);
}

TEST(Pool, IdleMemoryMakesRoomForOtherSizes) {
  Pool pool;
  pool.set_budget(1000);
  pool.take(600);
  EXPECT_NE(pool.take(500), nullptr);
  EXPECT_NE(pool.take(1000), nullptr);
  pool.set_budget(100);
  EXPECT_EQ(pool.take(101), nullptr);
}

TEST(Pool, MemoryThatTheMachineDoesNotHaveIsNoError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the program instead";
#endif
  Pool pool;
  pool.set_budget(std::uint64_t{1} << 62);
  EXPECT_EQ(pool.take(std::uint64_t{1} << 61), nullptr);
  EXPECT_NE(pool.take(8), nullptr);
}

}  // namespace
}  // namespace gradcheck::capture
