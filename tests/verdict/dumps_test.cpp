// SPDX-License-Identifier: Apache-2.0
#include "verdict/dumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "numeric/kernel.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Values = std::vector<float>;

// Tensors called 0, 1, …, of a few elements each, on each rank.
class Dumped {
 public:
  explicit Dumped(int ranks) : table_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const EventType type : {EventType::backward, EventType::optimizer_step}) {
        EventRecord event;
        event.type = type;
        table_.rank(rank).events.push_back(event);
      }
    }
  }

  void put(int rank, const char* name, Stage stage, const Values& values) {
    const auto& kept = kept_.emplace_back(std::make_unique<Values>(values));
    const TensorView view{
        DType::f32, {static_cast<std::int64_t>(kept->size())}, std::as_bytes(std::span(*kept))};
    TensorRecord record;
    record.kind = TensorKind::grad;
    record.stage = stage;
    record.name = name;
    record.shape = view.shape;
    record.stats = measure(DType::f32, view.bytes);
    record.state = state_of(record.stats);
    table_.put(rank, record, ++lines_);
    views_[{0, 0, stage, rank, "/" + std::string(name)}] = view;
  }

  void refer(const char* name, const Values& values) {
    const auto& kept = kept_.emplace_back(std::make_unique<Values>(values));
    reference_[name] = {
        DType::f32, {static_cast<std::int64_t>(kept->size())}, std::as_bytes(std::span(*kept))};
  }

  ArmReport judge(bool has_locals = false, Tolerance tolerance = {}) {
    table_.finish();
    DumpInput input{table_, views_};
    input.has_locals = has_locals;
    input.tolerance = tolerance;
    if (!reference_.empty()) input.reference = &reference_;
    return judge_dumps(input);
  }

 private:
  EvidenceTable table_;
  PayloadViews views_;
  std::vector<std::unique_ptr<Values>> kept_;
  std::map<std::string, TensorView> reference_;
  std::uint64_t lines_ = 0;
};

std::vector<int> codes_of(const ArmReport& arm) {
  std::vector<int> codes;
  for (const Finding& finding : arm.findings) codes.push_back(finding.code);
  return codes;
}

TEST(Dumps, ThatAreEqualAreConsistent) {
  Dumped dumped(2);
  for (int rank = 0; rank < 2; ++rank) dumped.put(rank, "w", Stage::reduced, {1, 2});
  const ArmReport arm = dumped.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent);
  EXPECT_THAT(arm.findings, IsEmpty());
  EXPECT_THAT(arm.causes, IsEmpty());
}

TEST(Dumps, OfOneRankProveNothing) {
  Dumped dumped(1);
  dumped.put(0, "w", Stage::reduced, {1, 2});
  EXPECT_EQ(dumped.judge().outcome, Outcome::inconclusive);
}

TEST(Dumps, WithoutTensorsProveNothing) {
  EXPECT_EQ(Dumped(2).judge().outcome, Outcome::inconclusive);
}

TEST(Dumps, OfZerosProveNothing) {
  Dumped dumped(2);
  for (int rank = 0; rank < 2; ++rank) dumped.put(rank, "w", Stage::reduced, {0, -0.0F});
  const ArmReport arm = dumped.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive);
  EXPECT_THAT(codes_of(arm), ElementsAre(602));
  EXPECT_EQ(arm.findings.front().message, "every tensor is zero on every rank");
}

TEST(Dumps, ThatARankDidNotWriteAreNotConsistent) {
  Dumped dumped(2);
  dumped.put(0, "w", Stage::reduced, {1, 2});
  EXPECT_NE(dumped.judge().outcome, Outcome::consistent);
}

TEST(Dumps, WithAReferenceNeedNoSecondRank) {
  Dumped dumped(1);
  dumped.put(0, "w", Stage::reduced, {1, 2});
  dumped.refer("w", {1, 2});
  EXPECT_EQ(dumped.judge().outcome, Outcome::consistent);
}

TEST(Dumps, OfZerosMatchNoReference) {
  Dumped dumped(1);
  dumped.put(0, "w", Stage::reduced, {0, 0});
  dumped.refer("w", {0, 0});
  EXPECT_EQ(dumped.judge().outcome, Outcome::inconclusive);
}

TEST(Dumps, BeyondTheReferencesToleranceAreWrong) {
  Dumped dumped(2);
  for (int rank = 0; rank < 2; ++rank) dumped.put(rank, "w", Stage::reduced, {1, 2});
  dumped.refer("w", {1, 3});
  const ArmReport arm = dumped.judge(false, {ToleranceKind::norm, 0, 0.1});
  EXPECT_EQ(arm.outcome, Outcome::inconsistent);
  EXPECT_THAT(codes_of(arm), ElementsAre(105));
  EXPECT_EQ(arm.totals.wrong, 1);
  EXPECT_EQ(arm.dumps.back().outside, 1U);
}

TEST(Dumps, OfWhichOneRankIsBeyondTheReferenceAreFoundWhicheverItIs) {
  for (int bad = 0; bad < 2; ++bad) {
    Dumped dumped(2);
    for (int rank = 0; rank < 2; ++rank) {
      dumped.put(rank, "w", Stage::reduced, {1, rank == bad ? 9.0F : 2.0F});
    }
    dumped.refer("w", {1, 2});
    EXPECT_THAT(codes_of(dumped.judge()), ElementsAre(101, 105));
  }
}

TEST(Dumps, AreAuditedWhereThereAreLocals) {
  for (const float second : {3.0F, 4.0F}) {
    Dumped dumped(2);
    for (int rank = 0; rank < 2; ++rank) {
      dumped.put(rank, "w", Stage::reduced, {2, second});
      dumped.put(rank, "w", Stage::local, {rank == 0 ? 1.0F : 3.0F, 3});
    }
    const bool right = second == 3.0F;
    EXPECT_EQ(dumped.judge(true).outcome, right ? Outcome::consistent : Outcome::inconsistent);
    EXPECT_EQ(dumped.judge(false).outcome, Outcome::consistent);
  }
}

}  // namespace
}  // namespace gradcheck
