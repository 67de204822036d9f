// SPDX-License-Identifier: Apache-2.0
#include "run/reference_weights.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

TensorRecord parameter(const std::string& name, std::int64_t step, std::uint64_t digest,
                       Stage stage = Stage::after) {
  TensorRecord record;
  record.model = "policy";
  record.name = name;
  record.kind = TensorKind::param;
  record.step = step;
  record.stage = stage;
  record.shape = {1};
  record.state = TensorState::finite;
  record.stats.digest = {digest, digest};
  return record;
}

FinalWeights weights(std::initializer_list<std::uint64_t> digests) {
  FinalWeights made;
  int index = 0;
  for (const std::uint64_t digest : digests) {
    made[{"policy", "w" + std::to_string(index++)}] = Digest{digest, digest};
  }
  return made;
}

ReferenceWeights compared(const FinalWeights& own, const FinalWeights& theirs) {
  ArmReport report;
  compare_weights(own, {"alone", theirs}, report);
  EXPECT_EQ(report.notes.size(), 1U);
  return report.reference_weights.value();
}

TEST(ReferenceWeights, AreThoseOfRank0AfterItsLastStep) {
  EvidenceTable table(2);
  std::uint64_t line = 0;
  table.put(0, parameter("w", 0, 1, Stage::start), ++line);
  table.put(0, parameter("w", 0, 2), ++line);
  table.put(0, parameter("w", 1, 3), ++line);
  table.put(1, parameter("w", 1, 4), ++line);
  table.finish();
  EXPECT_EQ(final_weights(table), (FinalWeights{{{"policy", "w"}, Digest{3, 3}}}));
}

TEST(ReferenceWeights, CountWhatIsEqual) {
  EXPECT_EQ(compared(weights({1, 2}), weights({1, 2})).equal, 2);
  EXPECT_EQ(compared(weights({1, 3}), weights({1, 2})).equal, 1);
  EXPECT_EQ(compared(weights({1, 3}), weights({1, 2})).compared, 2);
}

TEST(ReferenceWeights, NeverMatchWhereOneOfThemHasMore) {
  for (const auto& [own, theirs] :
       {std::pair(weights({1, 2}), weights({1})), std::pair(weights({1}), weights({1, 2}))}) {
    const ReferenceWeights result = compared(own, theirs);
    EXPECT_EQ(result.equal, 1);
    EXPECT_EQ(result.compared, 2);
  }
}

TEST(ReferenceWeights, OfNothingCompareNothing) { EXPECT_EQ(compared({}, {}).compared, 0); }

}  // namespace
}  // namespace gradcheck
