// SPDX-License-Identifier: Apache-2.0
#include "verdict/declarations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

// The wrapper's group, as each rank describes it.
ArmReport with_groups(const std::vector<std::vector<int>>& groups) {
  Recipe recipe;
  recipe.ranks = static_cast<int>(groups.size());
  recipe.edit = [groups](EvidenceTable& table) {
    for (int rank = 0; rank < table.world_size(); ++rank) {
      const auto& ranks = groups[static_cast<std::size_t>(rank)];
      table.rank(rank).wrappers.front().group = "dp";
      table.rank(rank).groups.push_back({"dp", ranks});
    }
  };
  return judged(recipe);
}

ArmReport with_other_wrapper(const std::function<void(RankEvidence&)>& edit) {
  Recipe recipe;
  recipe.edit = [edit](EvidenceTable& table) { edit(table.rank(1)); };
  return judged(recipe);
}

TEST(Declarations, GroupsThatAllRanksShareAreHealthy) {
  EXPECT_EQ(with_groups({{0, 1}, {1, 0}}).outcome, Outcome::consistent);
}

TEST(Declarations, GroupWithARankOutsideTheWorldIsRefusedNotFollowed) {
  for (const std::vector<int>& ranks :
       std::vector<std::vector<int>>{{0, 7}, {0, 1, 2}, {-1, 0}, {0, 1, 1}, {1024, 0}}) {
    const ArmReport arm = with_groups({ranks, ranks});
    EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
    EXPECT_THAT(told(arm), HasSubstr("group dp is not a set of this world's ranks"));
  }
}

TEST(Declarations, RanksThatDeclareDifferentGroupsAreNeverConsistent) {
  const ArmReport arm = with_groups({{0, 1}, {1}});
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("ranks declare different groups dp"));
}

TEST(Declarations, RanksThatDeclareDifferentWrappersAreNeverConsistent) {
  for (const auto& edit : std::vector<std::function<void(RankEvidence&)>>{
           [](RankEvidence& rank) { rank.wrappers.front().reduce = "sum"; },
           [](RankEvidence& rank) { rank.wrappers.front().ignored = {"nothing"}; },
           [](RankEvidence& rank) { rank.wrappers.front().divide = 3; },
           [](RankEvidence& rank) { rank.wrappers.clear(); },
           [](RankEvidence& rank) {
             WrapperRecord second = rank.wrappers.front();
             second.hook = "sum";
             rank.wrappers.push_back(second);
           }}) {
    const ArmReport arm = with_other_wrapper(edit);
    EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
    EXPECT_THAT(told(arm), HasSubstr("ranks declare different wrappers for policy"));
    ASSERT_TRUE(has_code(arm, 604));
    EXPECT_EQ(find_code_in(arm, 604)->ranks, std::vector<int>{1});
  }
}

TEST(Declarations, OrderOfIgnoredNamesIsNoDifference) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    table.rank(0).wrappers.front().ignored = {"x", "y"};
    table.rank(1).wrappers.front().ignored = {"y", "x"};
  };
  EXPECT_EQ(judged(recipe).outcome, Outcome::consistent);
}

TEST(Declarations, FindEntryKnowsNoRankOutsideTheWorld) {
  const MadeUpRun run({});
  const RowKey key = run.table().rows().front();
  EXPECT_NE(find_entry(run.table(), key, 1), nullptr);
  EXPECT_EQ(find_entry(run.table(), key, 2), nullptr);
  EXPECT_EQ(find_entry(run.table(), key, -1), nullptr);
}

}  // namespace
}  // namespace gradcheck
