// SPDX-License-Identifier: Apache-2.0
#include "cli/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcheck {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Expect counted(Outcome outcome, std::int64_t differed, std::int64_t of) {
  Expect expect;
  expect.outcome = outcome;
  expect.differed = differed;
  expect.of = of;
  return expect;
}

Scenario scenario() {
  Scenario made;
  made.name = "bypass";
  made.description = "What it is.";
  made.tags = {"kto", "wide"};
  Arm arm;
  arm.name = "unwrapped";
  arm.program.native = NativeProgram();
  arm.expect = counted(Outcome::inconsistent, 3, 3);
  arm.expect.codes = {"GC201"};
  made.arms.push_back(arm);
  return made;
}

class Listing : public ::testing::Test {
 protected:
  std::string listed(const Scenario& scenario, const std::string& rank_binary = "/bin/true") {
    SkipReasons reasons(host_, "", rank_binary);
    return listing_of({scenario}, reasons, 80);
  }

 private:
  Host host_;
};

TEST_F(Listing, SaysWhatAnArmMustShowInTheWordsOfAReport) {
  EXPECT_EQ(demand_of(counted(Outcome::consistent, 0, 90)), "0/90 differed");
  EXPECT_EQ(demand_of(counted(Outcome::inconsistent, 90, 90)), "90/90 differed");
  EXPECT_EQ(demand_of(counted(Outcome::inconsistent, 0, 90)), "0/90 differed, inconsistent");
  Expect raised;
  raised.outcome = Outcome::raised;
  raised.raises = RaisesExpectation{"storage", {}};
  EXPECT_EQ(demand_of(raised), "raised, \"storage\"");
  EXPECT_EQ(demand_of({}), "consistent");
}

TEST_F(Listing, ShowsArmsTagsAndDescription) {
  EXPECT_THAT(listed(scenario()),
              AllOf(HasSubstr("bypass  2 ranks   tags kto, wide"), HasSubstr("What it is."),
                    HasSubstr("unwrapped  3/3 differed, GC201"), HasSubstr("1 scenario\n"),
                    Not(HasSubstr("skipped"))));
}

TEST_F(Listing, SaysWhyAScenarioIsSkippedHere) {
  EXPECT_THAT(listed(scenario(), "/nowhere/gradcheck-rank"),
              AllOf(HasSubstr("skipped here: gradcheck-rank is not built"),
                    HasSubstr("1 scenario, 1 skipped here")));
  Scenario on_gpu = scenario();
  on_gpu.needs = {"gpu"};
  EXPECT_THAT(listed(on_gpu), AllOf(HasSubstr("needs gpu"), HasSubstr("skipped here: ")));
}

}  // namespace
}  // namespace gradcheck
