// SPDX-License-Identifier: Apache-2.0
// Ranks that run different numbers of micro-steps.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;

Values local(int rank, std::int64_t micro) {
  const auto seed = static_cast<std::uint64_t>(10 * rank + micro);
  return rounded(DType::f32, normal(JobModel::kSize, 70 + seed));
}

Values total(int rank, std::int64_t micros) {
  Values sum = local(rank, 0);
  for (std::int64_t micro = 1; micro < micros; ++micro) {
    sum = plus(DType::f32, sum, local(rank, micro));
  }
  return sum;
}

// One step of a model of which rank r runs micros[r] micro-steps, the last of them reduced.
class Uneven {
 public:
  explicit Uneven(std::vector<std::int64_t> micros) : micros_(std::move(micros)), job_(2) {
    std::vector<Values> totals;
    for (const int rank : {0, 1}) totals.push_back(total(rank, count(rank)));
    value_ = ddp_mean(DType::f32, totals);
  }

  ArmReport run() {
    for (const int rank : {0, 1}) run_rank(rank);
    return job_.judge();
  }

  double error = 0;  // in the reduced value of rank 1

 private:
  std::int64_t count(int rank) const { return micros_[static_cast<std::size_t>(rank)]; }

  void run_rank(int rank) {
    JobModel model(job_, "Net", true, {"weight", "bias"});
    model.takes_part = [rank](int other) { return other == rank; };
    model.begin(0);
    for (std::int64_t micro = 0; micro < count(rank); ++micro) {
      const bool last = micro + 1 == count(rank);
      Values value = value_;
      if (rank == 1) value[0] += error;
      Micro how{.armed = last, .no_sync = !last};
      how.local = [micro](int of, std::size_t) { return local(of, micro); };
      how.reduce = [value](const std::vector<Values>&) { return value; };
      model.backward(how);
    }
    model.step();
  }

  std::vector<std::int64_t> micros_;
  Job job_;
  Values value_;
};

TEST(Alignment, UnevenMicroStepsAreMatchedFromTheLast) {
  const ArmReport arm = Uneven({1, 3}).run();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "ranks ran different numbers of micro-steps of Net"));
}

TEST(Alignment, EvenMicroStepsNeedNoNote) {
  const ArmReport arm = Uneven({2, 2}).run();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_FALSE(has_note(arm, "different numbers"));
}

TEST(Alignment, UnevenMicroStepsHideNoDifference) {
  Uneven job({1, 3});
  job.error = 1e-3;
  const ArmReport arm = job.run();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 101));
}

}  // namespace
}  // namespace gradcheck
