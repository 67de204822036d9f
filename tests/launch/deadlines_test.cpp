// SPDX-License-Identifier: Apache-2.0
#include "launch/deadlines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DeadlineSeconds, AreTheContractsForTheDefaultTotal) {
  const DeadlineSeconds seconds = deadlines_for(120);
  EXPECT_EQ(seconds.step, 30);
  EXPECT_EQ(seconds.rendezvous, 30);
  EXPECT_EQ(seconds.spawn, 10);
}

TEST(DeadlineSeconds, FollowTheTotalAndNeverPassIt) {
  EXPECT_EQ(deadlines_for(400).step, 100);
  EXPECT_EQ(deadlines_for(8).step, 5);
  EXPECT_EQ(deadlines_for(2).step, 1.5);
}

TEST(Deadlines, NameThoseThatHavePassed) {
  Deadlines deadlines(3, 100);
  deadlines.set(0, "step", 50);
  deadlines.set(2, "step", 0);
  EXPECT_THAT(deadlines.passed(), ElementsAre(2));
  EXPECT_EQ(deadlines.name(2), "step (0 s)");
  deadlines.clear(2);
  EXPECT_THAT(deadlines.passed(), IsEmpty());
  EXPECT_FALSE(deadlines.total_passed());
}

TEST(Deadlines, HurryShortensOnlyWhatIsPending) {
  Deadlines deadlines(2, 100);
  deadlines.set(0, "step", 50);
  deadlines.hurry("after rank 1 ended", 0);
  EXPECT_THAT(deadlines.passed(), ElementsAre(0));
  EXPECT_EQ(deadlines.name(0), "after rank 1 ended (0 s)");
}

TEST(Deadlines, HurryNeverLengthensButRenames) {
  Deadlines deadlines(1, 100);
  deadlines.set(0, "step", 0);
  deadlines.hurry("after rank 1 ended", 60);
  EXPECT_THAT(deadlines.passed(), ElementsAre(0));
  EXPECT_EQ(deadlines.name(0), "after rank 1 ended (60 s)");
}

TEST(Deadlines, NothingSetLaterUndoesTheHurry) {
  Deadlines deadlines(2, 100);
  deadlines.hurry("after rank 1 ended", 0);
  deadlines.set(0, "step", 50);
  EXPECT_THAT(deadlines.passed(), ElementsAre(0));
  EXPECT_EQ(deadlines.name(0), "after rank 1 ended (0 s)");
}

TEST(Deadlines, ThoseAboutToPassAreToldOnRequest) {
  Deadlines deadlines(3, 100);
  deadlines.set(0, "step", 0);
  deadlines.set(1, "step", 5);
  deadlines.set(2, "step", 50);
  EXPECT_THAT(deadlines.passed(), ElementsAre(0));
  EXPECT_THAT(deadlines.passed(10), ElementsAre(0, 1));
}

}  // namespace
}  // namespace gradcheck
