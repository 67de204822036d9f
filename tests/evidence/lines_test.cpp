// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "evidence/read/parse.h"
#include "evidence/write/json_line.h"

namespace gradcheck {
namespace {

template <typename T>
T round_trip(const T& record, std::uint64_t sequence = 7) {
  LineParser parser;
  const ParsedLine parsed = parser.parse(to_line(record, sequence));
  EXPECT_EQ(parsed.sequence, sequence);
  return std::get<T>(parsed.record);
}

TensorRecord full_tensor() {
  TensorRecord record;
  record.step = 3;
  record.micro = 1;
  record.stage = Stage::reduced;
  record.kind = TensorKind::grad;
  record.model = "policy";
  record.name = "model.layers.0.self_attn.q_proj.weight";
  record.shape = {16, 8};
  record.dtype = DType::bf16;
  record.state = TensorState::finite;
  record.stats.digest = {0x0123456789abcdef, 0xfedcba9876543210};
  record.stats.n = 128;
  record.stats.zeros = 2;
  record.stats.l1 = 0.1;
  record.stats.l2 = 1.0 / 3;
  record.stats.max_abs = 5e-324;
  record.stats.min = -1e308;
  record.stats.max = 0.30000000000000004;
  record.stats.measured = true;
  record.stats.has_sketch = true;
  for (int i = 0; i < kSketchBuckets; ++i) record.stats.sketch[i] = std::ldexp(-1.0 / 3, i - 16);
  return record;
}

TEST(Lines, TensorRecordKeepsEveryBit) {
  const TensorRecord record = full_tensor();
  const TensorRecord read = round_trip(record);
  EXPECT_EQ(read.name, record.name);
  EXPECT_EQ(read.shape, record.shape);
  EXPECT_EQ(read.dtype, record.dtype);
  EXPECT_EQ(read.stats.digest, record.stats.digest);
  EXPECT_EQ(read.stats.l1, record.stats.l1);
  EXPECT_EQ(read.stats.l2, record.stats.l2);
  EXPECT_EQ(read.stats.max_abs, record.stats.max_abs);
  EXPECT_EQ(read.stats.min, record.stats.min);
  EXPECT_EQ(read.stats.max, record.stats.max);
  EXPECT_EQ(read.stats.sketch, record.stats.sketch);
  EXPECT_TRUE(read.stats.measured);
}

TEST(Lines, DigestOnlyRecordHasNoStatistics) {
  TensorRecord record = full_tensor();
  record.stats.measured = false;
  record.stats.has_sketch = false;
  record.requires_grad = true;
  const TensorRecord read = round_trip(record);
  EXPECT_FALSE(read.stats.measured);
  EXPECT_FALSE(read.stats.has_sketch);
  EXPECT_EQ(read.stats.digest, record.stats.digest);
  EXPECT_EQ(read.requires_grad, std::optional(true));
}

TEST(Lines, AbsentTensorCarriesNoDigest) {
  TensorRecord record = full_tensor();
  record.state = TensorState::absent;
  EXPECT_THAT(to_line(record, 0), testing::Not(testing::HasSubstr("digest")));
  EXPECT_EQ(round_trip(record).state, TensorState::absent);
}

TEST(Lines, NonFiniteNumbersAreNullAndReadBackAsNan) {
  TensorRecord record = full_tensor();
  record.stats.l1 = std::numeric_limits<double>::infinity();
  const std::string line = to_line(record, 0);
  EXPECT_THAT(line, testing::HasSubstr("\"l1\":null"));
  EXPECT_TRUE(std::isnan(round_trip(record).stats.l1));
}

TEST(Lines, HelloRoundTrips) {
  HelloRecord record;
  record.run = "abc/scenario/arm";
  record.world = "w";
  record.rank = 1;
  record.world_size = 2;
  record.pid = 4711;
  record.seed = 9007199254740992;
  record.versions = {{"torch", "2.13.0"}};
  record.env = {{"OMP_NUM_THREADS", "1=2"}};
  const HelloRecord read = round_trip(record);
  EXPECT_EQ(read.run, record.run);
  EXPECT_EQ(read.seed, record.seed);
  EXPECT_EQ(read.versions, record.versions);
  EXPECT_EQ(read.env, record.env);
}

TEST(Lines, WrapperAndGroupRoundTrip) {
  WrapperRecord wrapper;
  wrapper.model = "policy";
  wrapper.kind = "ddp";
  wrapper.group = "world";
  wrapper.ignored = {"a", "b"};
  wrapper.bucket_view = true;
  const WrapperRecord read = round_trip(wrapper);
  EXPECT_EQ(read.ignored, wrapper.ignored);
  EXPECT_TRUE(read.bucket_view);
  EXPECT_FALSE(read.static_graph);
  EXPECT_EQ(round_trip(GroupRecord{"world", {0, 1, 2}}).ranks, (std::vector<int>{0, 1, 2}));
}

TEST(Lines, EventKeepsUnsetFlagsUnset) {
  EventRecord event;
  event.type = EventType::backward;
  event.armed = false;
  event.site = "train.py:214";
  const EventRecord read = round_trip(event);
  EXPECT_EQ(read.armed, std::optional(false));
  EXPECT_EQ(read.no_sync, std::nullopt);
  EXPECT_EQ(read.site, event.site);
}

TEST(Lines, LogSoftmaxKeepsBothTypesItsModesAndItsClasses) {
  EventRecord event;
  event.type = EventType::log_softmax;
  event.op = "cross_entropy";
  event.dtype = "bf16";
  event.result_dtype = "f32";
  event.grad_mode = false;
  event.autocast = true;
  event.classes = 151'936;
  event.site = "train.py:88";
  const EventRecord read = round_trip(event);
  EXPECT_EQ(read.op, event.op);
  EXPECT_EQ(read.dtype, event.dtype);
  EXPECT_EQ(read.result_dtype, event.result_dtype);
  EXPECT_EQ(read.grad_mode, event.grad_mode);
  EXPECT_EQ(read.autocast, event.autocast);
  EXPECT_EQ(read.classes, event.classes);
  EXPECT_EQ(read.site, event.site);
}

TEST(Lines, LogSoftmaxWithAFieldOfAWrongTypeIsRefused) {
  const std::string start = R"({"type":"event","seq":0,"event":"log_softmax",)";
  LineParser parser;
  EXPECT_NO_THROW(parser.parse(start + R"("classes":1000,"autocast":true,"result_dtype":"f32"})"));
  for (const std::string field :
       {R"("classes":-1})", R"("classes":"1000"})", R"("autocast":1})", R"("result_dtype":32})"}) {
    EXPECT_THROW(parser.parse(start + field), std::runtime_error) << field;
  }
}

TEST(Lines, AllNamesOfAnOptimizerStepIsAnEmptyList) {
  EventRecord event;
  event.type = EventType::optimizer_step;
  event.optimizer = "AdamW";
  EXPECT_THAT(to_line(event, 0), testing::HasSubstr("\"names\":\"all\""));
  EXPECT_TRUE(round_trip(event).names.empty());
  event.names = {"w"};
  EXPECT_EQ(round_trip(event).names, event.names);
}

TEST(Lines, HostileTextStaysOneValidLine) {
  EventRecord event;
  event.type = EventType::exception;
  event.text = std::string("a\nb\"\\\x01\xff\xed\xa0\x80", 11) + std::string(200'000, '\x02');
  const std::string line = to_line(event, 0);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_LE(line.size(), kMaxLineBytes);
  EXPECT_EQ(round_trip(event).text.substr(0, 5), std::string("a\nb\"\\"));
}

TEST(Lines, PayloadWithTooManyNamesStillFitsInALine) {
  PayloadRecord payload;
  payload.file = "payload/x.safetensors";
  payload.names.assign(5000, "model/some.long.parameter.name.weight");
  EXPECT_LE(to_line(payload, 0).size(), kMaxLineBytes);
  EXPECT_TRUE(round_trip(payload).names.empty());
}

LogProbRecord log_probs() {
  LogProbRecord record;
  record.step = 2;
  record.micro = 1;
  record.name = "train";
  record.source = "gradcheck.log_probs";
  record.file = "payload/logp-rank-0.step-2.train.safetensors";
  record.keys = {"mask", "new", "old"};
  record.bytes = 96;
  record.digest = "0123456789abcdef0123456789abcdef";
  return record;
}

TEST(Lines, LogProbsOfKnownAndUnknownAge) {
  LogProbRecord record = log_probs();
  record.aliased = true;
  LogProbRecord read = round_trip(record);
  EXPECT_EQ(read.step, 2);
  EXPECT_EQ(read.micro, 1);
  EXPECT_EQ(read.name, record.name);
  EXPECT_EQ(read.source, record.source);
  EXPECT_EQ(read.file, record.file);
  EXPECT_EQ(read.keys, record.keys);
  EXPECT_EQ(read.bytes, 96U);
  EXPECT_EQ(read.digest, record.digest);
  EXPECT_TRUE(read.aliased);
  EXPECT_EQ(read.updates, std::nullopt);
  record.updates = 0;
  EXPECT_EQ(round_trip(record).updates, std::optional<std::int64_t>(0));
}

TEST(Lines, LogProbsThatWereNotWrittenSayWhy) {
  LogProbRecord record;
  record.name = "train";
  record.text = "the budget is spent";
  const LogProbRecord read = round_trip(record);
  EXPECT_EQ(read.file, "");
  EXPECT_EQ(read.text, record.text);
}

TEST(ValidUtf8, KeepsValidTextAndReplacesTheRest) {
  EXPECT_EQ(valid_utf8("größe ✓ 😀"), "größe ✓ 😀");
  EXPECT_EQ(valid_utf8("a\xC0\xAF"
                       "b"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(valid_utf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace gradcheck
