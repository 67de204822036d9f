// SPDX-License-Identifier: Apache-2.0
#include "verdict/exact_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;

// Parts and a value over elements of their own.
class Sum {
 public:
  explicit Sum(DType dtype) : dtype_(dtype) {}

  void add(const Values& values) { question_.parts.push_back(make(values)); }
  void add_absent() { question_.parts.push_back({&entries_.emplace_back()}); }
  void add_without_elements(const Values& values) {
    add(values);
    question_.parts.back().view = nullptr;
  }
  std::optional<bool> is(const Values& value) {
    question_.value = make(value);
    return is_exact_sum(question_);
  }

 private:
  Part make(const Values& values) {
    const auto& bytes = bytes_.emplace_back(to_bytes(dtype_, values));
    Entry& entry = entries_.emplace_back();
    entry.n = values.size();
    entry.dtype = dtype_;
    entry.state = TensorState::finite;
    views_.push_back({dtype_, {static_cast<std::int64_t>(values.size())}, bytes});
    return {&entry, nullptr, &views_.back()};
  }

  DType dtype_;
  AuditQuestion question_;
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<Entry> entries_;
  std::deque<TensorView> views_;
};

TEST(ExactSum, IsTakenInOrderAndRoundedAtEveryAddition) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Sum sum(dtype);
    Values right(10'000);
    for (const std::uint64_t micro : {1U, 2U, 3U, 4U}) {
      const Values part = rounded(dtype, normal(right.size(), micro, std::pow(10.0, micro - 2.0)));
      sum.add(part);
      right = micro == 1 ? part : plus(dtype, right, part);
    }
    EXPECT_EQ(sum.is(right), true) << name_of(dtype);
    right[9'999] += std::abs(right[9'999]) * 2 * unit_roundoff(dtype);
    EXPECT_EQ(sum.is(right), false) << name_of(dtype);
  }
}

TEST(ExactSum, AnotherOrderIsAnotherSum) {
  Sum sum(DType::f32);
  for (const double part : {1.0, 0x1p24, -0x1p24}) sum.add({part});
  EXPECT_EQ(sum.is({0.0}), true);
  EXPECT_EQ(sum.is({1.0}), false);
}

TEST(ExactSum, SubnormalsAndOverflowOfHalfTypesRoundAsTheyDo) {
  Sum small(DType::bf16);
  for (const double part : {0x1p-133, 0x1p-133}) small.add({part});
  EXPECT_EQ(small.is({0x1p-132}), true);
  Sum large(DType::bf16);
  for (const double part : {0x1.fep127, 0x1p120}) large.add({part});
  EXPECT_EQ(large.is({std::numeric_limits<double>::infinity()}), true);
}

TEST(ExactSum, TellsSignsOfZeroButNotNansApart) {
  Sum zeros(DType::f32);
  for (const double part : {-0.0, -0.0}) zeros.add({part});
  EXPECT_EQ(zeros.is({-0.0}), true);
  EXPECT_EQ(zeros.is({0.0}), false);
  Sum nans(DType::f32);
  for (const double part : {std::nan(""), 1.0}) nans.add({part});
  EXPECT_EQ(nans.is({-std::nan("")}), true);
  EXPECT_EQ(nans.is({1.0}), false);
}

TEST(ExactSum, LeavesOutAbsentPartsAndNeedsEveryElementOfTheOthers) {
  Sum sum(DType::f32);
  sum.add_absent();
  EXPECT_EQ(sum.is({1.0}), std::nullopt);
  sum.add({1.0});
  EXPECT_EQ(sum.is({1.0}), true);
  EXPECT_EQ(sum.is({1.0, 2.0}), std::nullopt);
  sum.add_without_elements({0.0});
  EXPECT_EQ(sum.is({1.0}), std::nullopt);
}

}  // namespace
}  // namespace gradcheck
