// SPDX-License-Identifier: Apache-2.0
#include "probes/native/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace gradcheck::native {
namespace {

Fault fault_of(const std::string& kind) {
  Fault fault;
  fault.kind = kind;
  return fault;
}

std::string problem_with(const Fault& fault) {
  const ModelTensors parameters = {{"model.norm.weight", {}}, {"lm_head.weight", {}}};
  try {
    check_target(fault, parameters, {{"model.freqs_cos", {}}});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Faults, AFaultOnATensorThatIsNotThereIsRefused) {
  Fault fault = fault_of("skip_hook");
  fault.tensor = "model.norm.wieght";
  EXPECT_EQ(problem_with(fault),
            "fault \"skip_hook\": the model has no parameter \"model.norm.wieght\"; did you mean "
            "'model.norm.weight'?");
  fault.tensor = "lm_head.weight";
  EXPECT_EQ(problem_with(fault), "");
}

TEST(Faults, OtherKindsNameNoParameter) {
  Fault fault = fault_of("skip_mark");
  fault.tensor = "reduced";
  EXPECT_EQ(problem_with(fault), "");
  EXPECT_EQ(problem_with(fault_of("corrupt_reduction")), "");
}

TEST(Faults, OnlyKindsThatNeedAPhaseStrikeInOne) {
  Fault fault = fault_of("raise");
  fault.phase = "forward";
  EXPECT_TRUE(Faults(fault, 0).strikes_in("forward"));
  EXPECT_FALSE(Faults(fault, 0).strikes_in("backward"));
  EXPECT_THROW(Faults(fault, 0).strike("forward", 0), std::runtime_error);
  fault.kind = "skip_reduction";
  EXPECT_FALSE(Faults(fault, 0).strikes_in("forward"));
  EXPECT_NO_THROW(Faults(fault, 0).strike("forward", 0));
}

TEST(Faults, OfAnotherRankDoNothingHere) {
  Fault fault = fault_of("skip_reduction");
  fault.rank = 1;
  EXPECT_FALSE(Faults(fault, 0).skips_reduction(0));
  EXPECT_TRUE(Faults(fault, 1).skips_reduction(0));
}

}  // namespace
}  // namespace gradcheck::native
