// SPDX-License-Identifier: Apache-2.0
#include "model/expectation.h"

#include <gtest/gtest.h>

namespace gradcheck {
namespace {

Expect inconsistent() {
  Expect expect;
  expect.outcome = Outcome::inconsistent;
  expect.differed = 310;
  expect.of = 310;
  expect.codes = {"GC201"};
  return expect;
}

Expect consistent() {
  Expect expect;
  expect.outcome = Outcome::consistent;
  return expect;
}

ExpectOverride when(std::vector<int> ranks, std::vector<std::string> dtypes, Expect expect) {
  return {{std::move(ranks), std::move(dtypes)}, std::move(expect)};
}

TEST(Condition, EmptyListsAdmitEverything) {
  EXPECT_TRUE(holds({}, 2, "fp32"));
  EXPECT_TRUE(holds({{2, 4}, {}}, 4, ""));
  EXPECT_FALSE(holds({{2, 4}, {}}, 3, ""));
  EXPECT_FALSE(holds({{2, 4}, {"bf16"}}, 4, "fp32"));
}

TEST(ExpectedFor, LaysWhatHoldsOverTheBaseInOrder) {
  Expect expect = inconsistent();
  Expect fewer, wrong;
  fewer.differed = 300;
  wrong.wrong = 10;
  expect.when = {when({4}, {}, fewer), when({}, {"bf16"}, wrong)};
  EXPECT_EQ(expected_for(expect, 2, "fp32").differed, 310);
  EXPECT_EQ(expected_for(expect, 4, "fp32").differed, 300);
  const Expect both = expected_for(expect, 4, "bf16");
  EXPECT_EQ(both.differed, 300);
  EXPECT_EQ(both.wrong, 10);
  EXPECT_EQ(both.outcome, Outcome::inconsistent);
  EXPECT_TRUE(both.when.empty());
}

TEST(ExpectedFor, AnotherOutcomeKeepsNothingOfTheOldOne) {
  Expect expect = inconsistent();
  expect.when = {when({1}, {}, consistent())};
  const Expect alone = expected_for(expect, 1, "fp32");
  EXPECT_EQ(alone.outcome, Outcome::consistent);
  EXPECT_EQ(alone.differed, std::nullopt);
  EXPECT_TRUE(alone.codes.empty());
}

TEST(DemandsSomething, ZeroIsADemand) {
  Expect expect;
  EXPECT_FALSE(demands_something(expect));
  expect.wrong = 0;
  EXPECT_TRUE(demands_something(expect));
}

TEST(Contradiction, ConsistentWithDifferencesWrongsOrErrorCodes) {
  Expect expect = consistent();
  EXPECT_EQ(contradiction_in(expect), "");
  expect.differed = 1;
  EXPECT_NE(contradiction_in(expect), "");
  expect = consistent();
  expect.wrong = 1;
  EXPECT_NE(contradiction_in(expect), "");
  expect = consistent();
  expect.codes = {"GC601"};
  EXPECT_NE(contradiction_in(expect), "");
}

TEST(Contradiction, NotesWarningsAndDeathAtExitGoWithConsistent) {
  Expect expect = consistent();
  expect.codes = {"GC212", "GC402", "GC802"};
  EXPECT_EQ(contradiction_in(expect), "");
  expect.codes = {"GC605"};  // log-probs that a job handed over and that are no test
  EXPECT_EQ(contradiction_in(expect), "");
}

TEST(Contradiction, DifferedAndWrongAreDisjointPartsOfTheInventory) {
  Expect expect = inconsistent();
  EXPECT_EQ(contradiction_in(expect), "");
  expect.wrong = 1;
  EXPECT_NE(contradiction_in(expect), "");
}

TEST(Contradiction, SkippedAndRaisesWithoutRaised) {
  Expect expect;
  expect.outcome = Outcome::skipped;
  EXPECT_NE(contradiction_in(expect), "");
  expect = inconsistent();
  expect.raises = RaisesExpectation{};
  EXPECT_NE(contradiction_in(expect), "");
}

TEST(Misfit, AFaultOnARankOrStepThatDoesNotExist) {
  Arm arm;
  arm.program.native = NativeProgram{};
  arm.program.native->fault = Fault{"kill", 1, "forward", 0, ""};
  EXPECT_EQ(misfit_of(arm, 2, 1), "");
  EXPECT_NE(misfit_of(arm, 1, 1), "");
  arm.program.native->fault->step = 1;
  EXPECT_NE(misfit_of(arm, 2, 1), "");
  EXPECT_EQ(misfit_of(arm, 2, 2), "");
}

TEST(Misfit, AnExceptionExpectedOnARankThatDoesNotExist) {
  Arm arm;
  arm.expect.outcome = Outcome::raised;
  arm.expect.raises = RaisesExpectation{"", {3}};
  EXPECT_NE(misfit_of(arm, 3, 1), "");
  EXPECT_EQ(misfit_of(arm, 4, 1), "");
}

}  // namespace
}  // namespace gradcheck
