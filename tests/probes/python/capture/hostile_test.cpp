// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "probes/python/capture/json_check.h"
#include "support.h"

namespace gradcheck::capture {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Hostile : public CaptureTest {
 protected:
  void SetUp() override {
    CaptureTest::SetUp();
    gradcheck_send(handle(), kHello);
    slot_ = slot("weight");
  }
  // What every function that takes a tensor must say to this one.
  void expect_refused(const gradcheck_view& view, const char* why) {
    std::array<char, 33> out{};
    EXPECT_EQ(gradcheck_record(handle(), slot_, 0, 0, 2, 1, &view, -1, 1), -1) << why;
    EXPECT_THAT(error(), HasSubstr(why));
    EXPECT_EQ(gradcheck_local(handle(), slot_, &view, 1), -1) << why;
    EXPECT_EQ(gradcheck_digest(handle(), &view, out.data()), -1) << why;
    EXPECT_EQ(gradcheck_is_zero(handle(), &view), -1) << why;
    EXPECT_THAT(error(), HasSubstr(why));
  }
  std::int32_t record_at(std::int64_t step, std::int64_t micro, std::int32_t stage,
                         std::int32_t kind) {
    const gradcheck_view view = values_.view();
    return gradcheck_record(handle(), slot_, step, micro, stage, kind, &view, -1, 0);
  }

  Tensor<float> values_ = wave(6);
  std::int32_t slot_ = -1;
};

TEST_F(Hostile, ViewsThatCannotBeAreRefusedWithASentence) {
  const void* data = values_.elements.data();
  const std::int64_t sizes[] = {2, 3};
  const std::int64_t negative_strides[] = {-3, 1};
  const std::int64_t huge_strides[] = {kMost, kMost};
  const std::int64_t far_strides[] = {kMost / 2, 1};
  const std::int64_t negative_sizes[] = {2, -3};
  const std::int64_t huge_sizes[] = {kMost, 3};
  const std::int64_t large_sizes[] = {std::int64_t{1} << 31, std::int64_t{1} << 31};
  expect_refused({data, sizes, negative_strides, 2, 1, 0}, "a stride is negative");
  expect_refused({data, sizes, huge_strides, 2, 1, 0}, "the strides are too large");
  expect_refused({data, sizes, far_strides, 2, 1, 0}, "the strides are too large");
  expect_refused({data, negative_sizes, nullptr, 2, 1, 0}, "a size is negative");
  expect_refused({data, huge_sizes, nullptr, 2, 1, 0}, "the sizes are too large");
  expect_refused({data, large_sizes, nullptr, 2, 1, 0}, "the sizes are too large");
  expect_refused({data, nullptr, nullptr, 2, 1, 0}, "sizes are missing");
  expect_refused({data, sizes, nullptr, -1, 1, 0}, "ndim");
  expect_refused({data, sizes, nullptr, 65, 1, 0}, "ndim");
  expect_refused({data, sizes, nullptr, 2, -1, 0}, "dtype");
  expect_refused({data, sizes, nullptr, 2, 15, 0}, "dtype");
  EXPECT_EQ(record_at(0, 0, 2, 1), 0) << "the handle works on: " << error();
  read_back();
}

TEST_F(Hostile, ScalarsAndEmptyTensorsAreOrdinary) {
  const gradcheck_view scalar{values_.elements.data(), nullptr, nullptr, 0, 1, 0};
  const std::int64_t sizes[] = {kMost, 0, 5};
  const std::int64_t strides[] = {-1, kMost, 7};
  const gradcheck_view empty{nullptr, sizes, strides, 3, 1, 0};
  EXPECT_EQ(gradcheck_record(handle(), slot_, 0, 0, 2, 1, &scalar, -1, 1), 0) << error();
  std::array<char, 33> out{};
  EXPECT_EQ(gradcheck_digest(handle(), &empty, out.data()), 0) << error();
  EXPECT_STREQ(out.data(), "99aa06d3014798d86001c324468d497f") << "XXH3-128 of nothing";
  EXPECT_EQ(entry(read_back(), 0, Stage::reduced, "weight").n, 1U);
}

TEST_F(Hostile, SlotsStagesKindsAndMomentsAreChecked) {
  const gradcheck_view view = values_.view();
  for (const std::int32_t slot : {-1, 1, 1'000'000}) {
    EXPECT_EQ(gradcheck_record(handle(), slot, 0, 0, 2, 1, &view, -1, 0), -1);
    EXPECT_THAT(error(), HasSubstr("there is no slot"));
    EXPECT_EQ(gradcheck_local(handle(), slot, &view, 0), -1);
    EXPECT_EQ(gradcheck_close_local(handle(), 0, 0, &slot, 1), -1);
    EXPECT_EQ(gradcheck_drop_local(handle(), &slot, 1), -1);
  }
  for (const std::int32_t stage : {-1, 6}) EXPECT_EQ(record_at(0, 0, stage, 1), -1);
  for (const std::int32_t kind : {-1, 3}) EXPECT_EQ(record_at(0, 0, 2, kind), -1);
  EXPECT_EQ(record_at(0, 0, 1, 1), -1);
  EXPECT_THAT(error(), HasSubstr("gradcheck_local"));
  EXPECT_EQ(record_at(-1, 0, 2, 1), -1);
  EXPECT_EQ(record_at(0, -1, 2, 1), -1);
  EXPECT_EQ(gradcheck_mark(handle(), "Net", -1, 0, 2), -1);
  EXPECT_EQ(gradcheck_mark(handle(), "Net", 0, 0, 9), -1);
  EXPECT_EQ(gradcheck_mark(handle(), "", 0, 0, 2), -1);
}

TEST_F(Hostile, NullIsRefusedWhereSomethingIsNeeded) {
  std::array<char, 33> out{};
  const gradcheck_view view = values_.view();
  EXPECT_EQ(gradcheck_send(handle(), nullptr), -1);
  EXPECT_EQ(gradcheck_slot(handle(), nullptr, "w", nullptr), -1);
  EXPECT_EQ(gradcheck_slot(handle(), "Net", nullptr, nullptr), -1);
  EXPECT_EQ(gradcheck_slot(handle(), "Net", std::string(3000, 'x').c_str(), nullptr), -1);
  EXPECT_EQ(gradcheck_mark(handle(), nullptr, 0, 0, 2), -1);
  EXPECT_EQ(gradcheck_close_local(handle(), 0, 0, nullptr, 1), -1);
  EXPECT_EQ(gradcheck_close_local(handle(), 0, 0, &slot_, -1), -1);
  EXPECT_EQ(gradcheck_payload(handle(), nullptr, 0, 0, 2, nullptr, 0, 0, nullptr), -1);
  EXPECT_EQ(gradcheck_payload(handle(), "x", 0, 0, 2, &slot_, 1, 0, nullptr), -1);
  EXPECT_EQ(gradcheck_digest(handle(), nullptr, out.data()), -1);
  EXPECT_EQ(gradcheck_digest(handle(), &view, nullptr), -1);
  EXPECT_EQ(gradcheck_is_zero(handle(), nullptr), -1);
  EXPECT_EQ(gradcheck_receive(handle(), NAN, nullptr, 10), -1);
  EXPECT_EQ(gradcheck_receive(handle(), NAN, out.data(), -1), -1);
  EXPECT_EQ(gradcheck_receive(handle(), INFINITY, out.data(), 33), 0) << "a file says nothing";
  EXPECT_EQ(gradcheck_local(handle(), slot_, nullptr, 1), 0) << "absent adds nothing";
  EXPECT_EQ(record_at(0, 0, 2, 1), 0) << error();
}

TEST(NullHandle, FailsEverywhereAndCrashesNowhere) {
  std::array<char, 33> out{};
  EXPECT_EQ(gradcheck_send(nullptr, "{}"), -1);
  EXPECT_STREQ(gradcheck_error(nullptr), "the handle is null");
  EXPECT_EQ(gradcheck_bye(nullptr, 0), -1);
  EXPECT_EQ(gradcheck_flush(nullptr), -1);
  EXPECT_EQ(gradcheck_slot(nullptr, "a", "b", nullptr), -1);
  EXPECT_EQ(gradcheck_local(nullptr, 0, nullptr, 0), -1);
  EXPECT_EQ(gradcheck_close_local(nullptr, 0, 0, nullptr, 0), -1);
  EXPECT_EQ(gradcheck_drop_local(nullptr, nullptr, 0), -1);
  EXPECT_EQ(gradcheck_record(nullptr, 0, 0, 0, 0, 0, nullptr, 0, 0), -1);
  EXPECT_EQ(gradcheck_mark(nullptr, "a", 0, 0, 0), -1);
  EXPECT_EQ(gradcheck_payload(nullptr, "a", 0, 0, 0, nullptr, 0, 0, nullptr), -1);
  EXPECT_EQ(gradcheck_digest(nullptr, nullptr, out.data()), -1);
  EXPECT_EQ(gradcheck_is_zero(nullptr, nullptr), -1);
  EXPECT_EQ(gradcheck_receive(nullptr, 0, out.data(), 33), -1);
  EXPECT_EQ(gradcheck_seconds(nullptr), 0);
  EXPECT_EQ(gradcheck_open_socket(nullptr, 1), nullptr);
  EXPECT_STREQ(gradcheck_error(nullptr), "path is null");
  EXPECT_EQ(gradcheck_open_socket("x", NAN), nullptr);
  EXPECT_EQ(gradcheck_open_file(nullptr), nullptr);
  gradcheck_keep_budget(nullptr, 1);
  gradcheck_forget(nullptr, 1);
  gradcheck_close(nullptr);
  EXPECT_EQ(gradcheck_abi(), GRADCHECK_ABI);
}

// The longest line that names allow stays below what the front reads.
TEST_F(Hostile, LongNamesThatGrowWhenEscapedFitIntoALine) {
  const std::string name(2048, '\x01');
  const std::int32_t slot = gradcheck_slot(handle(), name.c_str(), name.c_str(), name.c_str());
  ASSERT_GE(slot, 0) << error();
  const std::vector<std::int64_t> sizes(64, 1);
  const gradcheck_view view{values_.elements.data(), sizes.data(), nullptr, 64, 1, 0};
  EXPECT_EQ(gradcheck_record(handle(), slot, kMost, kMost, 2, 1, &view, 1, 0), 0);
  EXPECT_EQ(gradcheck_mark(handle(), name.c_str(), kMost, kMost, 2), 0);
  read_back();
}

TEST_F(Hostile, RecordsThatTheFrontWouldRefuseAreNotSent) {
  const std::string long_text = R"({"text":")" + std::string(70'000, 'x') + "\"}";
  for (const std::string& line : {std::string(R"({"norm": NaN})"), long_text, std::string()}) {
    EXPECT_EQ(gradcheck_send(handle(), line.c_str()), -1);
  }
  EXPECT_EQ(gradcheck_send(handle(), "{\"type\":\"x\"}"), 0);
  EXPECT_EQ(gradcheck_send(handle(), "{}\n{}"), -1);
  EXPECT_EQ(gradcheck_flush(handle()), 0);
  read_back();
}

TEST(JsonCheck, TakesObjects) {
  for (const char* good : {"{}", " { } ", R"({"a":1})", R"({"a":-0.5e+10,"b":[1,[],{}],"c":"\n"})",
                           R"({"a":"é \u00e9 \ud834\udd1e"})", R"({"a":[true,false,null]})"}) {
    EXPECT_TRUE(is_json_object(good)) << good;
  }
}

TEST(JsonCheck, RefusesEverythingElse) {
  const std::string deep = R"({"a":)" + std::string(100'000, '[');
  for (const char* bad : {"",
                          "[]",
                          "1",
                          "{",
                          "}",
                          "{}{}",
                          "{}\n",
                          R"({"a"})",
                          R"({"a":})",
                          R"({"a":1,})",
                          R"({a:1})",
                          R"({"a":01})",
                          R"({"a":1.})",
                          R"({"a":.5})",
                          R"({"a":+1})",
                          R"({"a":1e})",
                          R"({"a":NaN})",
                          R"({"a":Infinity})",
                          R"({"a":-Infinity})",
                          R"({"a":nul})",
                          R"({"a":"\x"})",
                          R"({"a":"\ud834"})",
                          R"({"a":"\ud834\ud834"})",
                          R"({"a":"\udd1e"})",
                          R"({"a":"\u12"})",
                          "{\"a\":\"\t\"}",
                          "{\"a\":\"\xff\"}",
                          "{\"a\":\"\xed\xa0\x80\"}",
                          R"({"a":[1 2]})",
                          R"({"a":1]})",
                          R"({"a":"b)",
                          deep.c_str()}) {
    EXPECT_FALSE(is_json_object(bad)) << bad;
  }
}

}  // namespace
}  // namespace gradcheck::capture
