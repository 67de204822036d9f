// SPDX-License-Identifier: Apache-2.0
#include "verdict/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gradcheck {
namespace {

Sketch random_sketch(std::mt19937_64& engine, double scale = 1) {
  std::normal_distribution<double> draw(0, scale);
  Sketch sketch;
  for (double& x : sketch) x = draw(engine);
  return sketch;
}

Sketch combine(const std::vector<Sketch>& columns, const std::vector<double>& weights) {
  Sketch sum{};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weights[c] * columns[c][k];
  }
  return sum;
}

TEST(Weights, AreFoundToFullPrecision) {
  std::mt19937_64 engine(1);
  const std::vector<double> truth = {0.1, 0.2, 0.3, 0.4};
  Stack stack(4);
  for (int block = 0; block < 5; ++block) {
    std::vector<Sketch> columns;
    for (int c = 0; c < 4; ++c) columns.push_back(random_sketch(engine));
    stack.add(combine(columns, truth), columns, 3);
  }
  const Fit found = fit(stack, std::vector<double>(4, 0.25));
  ASSERT_FALSE(found.refused) << found.reason;
  for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(found.weights[c], truth[c], 1e-12);
  EXPECT_LT(found.residual, 1e-12);
}

TEST(Weights, StandardErrorsAreHonest) {
  std::mt19937_64 engine(2);
  double worst = 0, squares = 0;
  int count = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Stack stack(3);
    for (int block = 0; block < 3; ++block) {
      std::vector<Sketch> columns;
      for (int c = 0; c < 3; ++c) columns.push_back(random_sketch(engine));
      Sketch value = combine(columns, {0.3, 0.3, 0.3});
      const Sketch noise = random_sketch(engine, 0.01);
      for (std::size_t k = 0; k < value.size(); ++k) value[k] += noise[k];
      stack.add(value, columns, 1);
    }
    const Fit found = fit(stack, std::vector<double>(3, 0.3));
    for (std::size_t c = 0; c < 3; ++c, ++count) {
      const double z = (found.weights[c] - 0.3) / found.errors[c];
      worst = std::max(worst, std::abs(z));
      squares += z * z;
    }
  }
  EXPECT_LT(worst, 5);
  EXPECT_NEAR(std::sqrt(squares / count), 1, 0.15);
}

TEST(Weights, EqualLocalsAreRefusedNotFitted) {
  std::mt19937_64 engine(3);
  Stack stack(2);
  for (int block = 0; block < 3; ++block) {
    const Sketch same = random_sketch(engine);
    stack.add(same, std::vector<Sketch>{same, same}, 1);
  }
  EXPECT_TRUE(fit(stack, std::vector<double>(2, 0.5)).refused);
}

TEST(Weights, NearlyEqualLocalsAreRefusedWithTheConditionNumber) {
  std::mt19937_64 engine(4);
  Stack stack(2);
  for (int block = 0; block < 3; ++block) {
    const Sketch one = random_sketch(engine);
    Sketch other = one;
    const Sketch noise = random_sketch(engine, 1e-6);
    for (std::size_t k = 0; k < one.size(); ++k) other[k] += noise[k];
    stack.add(one, std::vector<Sketch>{one, other}, 1);
  }
  const Fit found = fit(stack, std::vector<double>(2, 0.5));
  EXPECT_TRUE(found.refused);
  EXPECT_GT(found.condition, 1e4);
}

TEST(Weights, TooFewRowsAreRefused) {
  std::mt19937_64 engine(5);
  Stack stack(16);
  std::vector<Sketch> columns;
  for (int c = 0; c < 16; ++c) columns.push_back(random_sketch(engine));
  stack.add(columns[0], columns, 1);
  EXPECT_TRUE(fit(stack, std::vector<double>(16, 0.1)).refused);
}

TEST(Weights, RowsWithoutElementsDoNotCount) {
  Stack stack(1);
  Sketch single{};
  single[4] = 1;
  for (int block = 0; block < 10; ++block) stack.add(single, std::vector<Sketch>{single}, 1);
  EXPECT_TRUE(fit(stack, std::vector<double>(1, 1.0)).refused);
}

}  // namespace
}  // namespace gradcheck
