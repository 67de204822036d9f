// SPDX-License-Identifier: Apache-2.0
// Communication hooks of the program's own that average in a coarser type.
#include <gtest/gtest.h>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;

ArmReport hooked(const std::string& hook, const Micro& how) {
  Job job;
  JobModel model(job, "Net");
  for (const int rank : {0, 1}) job.table().rank(rank).wrappers.back().hook = hook;
  train(model, 0, how);
  return job.judge();
}

Values mean_in_bf16(const std::vector<Values>& ranks) {
  std::vector<Values> narrow;
  for (const Values& values : ranks) narrow.push_back(rounded(DType::bf16, values));
  return ddp_mean(DType::bf16, narrow);
}

TEST(Wires, OwnHookThatAveragesInBf16IsHealthyAndTold) {
  const ArmReport arm = hooked("__main__.compress", {.reduce = mean_in_bf16});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "__main__.compress of Net averages in bf16")) << told_with_notes(arm);
}

// Nobody but a hook of one's own can be the reason.
TEST(Wires, WithoutSuchAHookTheSameValuesAreWrong) {
  EXPECT_TRUE(has_code(hooked("", {.reduce = mean_in_bf16}), 209));
}

TEST(Wires, OwnHookThatForgetsToDivideIsFoundInAnyType) {
  const Micro sum{.reduce = [](const std::vector<Values>& ranks) {
    return times(DType::f32, mean_in_bf16(ranks), 2);
  }};
  const ArmReport arm = hooked("__main__.compress", sum);
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_cause(arm, Cause::sum_not_mean)) << told_with_notes(arm);
}

TEST(Wires, OwnHookThatWeightsRanksIsFoundInAnyType) {
  const Micro uneven{.reduce = [](const std::vector<Values>& ranks) {
    return plus(DType::bf16, times(DType::bf16, ranks[0], 0.45),
                times(DType::bf16, ranks[1], 0.55));
  }};
  EXPECT_EQ(hooked("__main__.compress", uneven).outcome, Outcome::inconsistent);
}

TEST(Wires, OwnHookThatIsExactNeedsNoNote) {
  const ArmReport arm = hooked("__main__.plain", {});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_FALSE(has_note(arm, "averages in")) << told_with_notes(arm);
}

}  // namespace
}  // namespace gradcheck
