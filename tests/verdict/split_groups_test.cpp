// SPDX-License-Identifier: Apache-2.0
// Models that different ranks wrap over different groups.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;

// Ranks 0, 1 and 2, 3 wrap the model each for themselves.
ArmReport in_pairs(bool equal_start, const Micro& of_second = {}) {
  Job job(4);
  for (const int first : {0, 2}) {
    JobModel model(job, "Net");
    model.takes_part = [first](int rank) { return rank / 2 == first / 2; };
    for (auto& ranks : model.parameters()) {
      for (Values& values : ranks) values[0] += equal_start ? 0 : first;
    }
    Micro how = first == 0 ? Micro{} : of_second;
    if (!how.reduce) {
      how.reduce = [first](const std::vector<Values>& all) {
        const auto at = static_cast<std::size_t>(first);
        return ddp_mean(DType::f32, {all[at], all[at + 1]});
      };
    }
    train(model, 0, how);
  }
  for (int rank = 0; rank < 4; ++rank) {
    const int first = rank / 2 * 2;
    const std::string name = first == 0 ? "ranks 0,1" : "ranks 2,3";
    RankEvidence& evidence = job.table().rank(rank);
    evidence.groups.push_back({name, {first, first + 1}});
    evidence.wrappers.resize(1);
    evidence.wrappers.front().group = name;
  }
  return job.judge();
}

TEST(Groups, ModelsOfDifferentGroupsAreJudgedByThemselves) {
  const ArmReport arm = in_pairs(false);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.inventory, 6U);
  EXPECT_TRUE(has_note(arm, "each group is judged by itself")) << told_with_notes(arm);
}

TEST(Groups, ReplicasInDifferentGroupsAreNoPass) {
  const ArmReport arm = in_pairs(true);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 604));
}

TEST(Groups, WhatIsWrongInOneGroupIsFound) {
  const ArmReport arm = in_pairs(false, {.armed = false, .bare = true});
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 201));
  EXPECT_EQ(find_code_in(arm, 201)->model, "Net (ranks 2,3)");
}

}  // namespace
}  // namespace gradcheck
