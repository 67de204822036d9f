// SPDX-License-Identifier: Apache-2.0
#include "verdict/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;

// An audit question over values of its own, without a table.
class Question {
 public:
  Question(DType dtype, bool elements) : dtype_(dtype), elements_(elements) {
    question_.roundoff = unit_roundoff(dtype);
    question_.subnormal = smallest_subnormal(dtype);
  }

  void add_part(const Values& values, double weight) {
    Part part = make(values);
    part.weight = weight;
    question_.parts.push_back(part);
    question_.ranks = static_cast<int>(question_.parts.size());
  }

  Audit ask(const Values& value) {
    question_.value = make(value);
    return audit(question_);
  }

 private:
  Part make(const Values& values) {
    const auto& bytes = bytes_.emplace_back(to_bytes(dtype_, values));
    const TensorStats stats = measure(dtype_, bytes);
    Entry& entry = entries_.emplace_back();
    entry.recorded = true;
    entry.n = stats.n;
    entry.l2 = stats.l2;
    entry.dtype = dtype_;
    entry.state = state_of(stats);
    Part part;
    part.entry = &entry;
    part.sketch = &sketches_.emplace_back(stats.sketch);
    views_.push_back({dtype_, {static_cast<std::int64_t>(values.size())}, bytes});
    part.view = elements_ ? &views_.back() : nullptr;
    return part;
  }

  DType dtype_;
  bool elements_;
  AuditQuestion question_;
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<Entry> entries_;
  std::deque<Sketch> sketches_;
  std::deque<TensorView> views_;
};

double norm(const Values& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

double sketch_norm(const Values& values) {
  double sum = 0;
  for (const double x : measure(DType::f64, to_bytes(DType::f64, values)).sketch) sum += x * x;
  return std::sqrt(sum);
}

TEST(Audit, MeanOfEveryTypeAndSizePasses) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const std::size_t ranks : {2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
      for (const bool elements : {true, false}) {
        Question question(dtype, elements);
        std::vector<Values> locals;
        for (std::size_t r = 0; r < ranks; ++r) {
          locals.push_back(rounded(dtype, normal(5000, ranks * 10 + r, 1e-3)));
          question.add_part(locals.back(), 1.0 / static_cast<double>(ranks));
        }
        const Audit answer = question.ask(ddp_mean(dtype, locals));
        EXPECT_EQ(answer.result, RungResult::pass) << name_of(dtype) << ranks;
        EXPECT_LE(*answer.bound_used, 0.87);
      }
    }
  }
}

TEST(Audit, SubnormalSumsPass) {
  Question question(DType::f32, true);
  std::vector<Values> locals;
  for (std::size_t r = 0; r < 3; ++r) {
    locals.push_back(rounded(DType::f32, normal(1000, r, 1e-44)));
    question.add_part(locals.back(), 1.0 / 3);
  }
  EXPECT_EQ(question.ask(ddp_mean(DType::f32, locals)).result, RungResult::pass);
}

TEST(Audit, TinyUnreducedGradientIsFoundAtAnyScale) {
  for (const double scale : {1.0, 1e-5, 1e-9, 1e-20}) {
    for (const bool elements : {true, false}) {
      Question question(DType::f32, elements);
      const Values a = rounded(DType::f32, normal(500, 1, scale));
      const Values b = rounded(DType::f32, normal(500, 2, scale));
      question.add_part(a, 0.5);
      question.add_part(b, 0.5);
      EXPECT_EQ(question.ask(a).result, RungResult::fail) << scale;
    }
  }
}

TEST(Audit, OneElementOffByAThousandthIsFoundElementwise) {
  Question question(DType::f32, true);
  const Values a = rounded(DType::f32, normal(500, 1));
  question.add_part(a, 0.5);
  question.add_part(a, 0.5);
  Values value = a;
  value[123] *= 1.001;
  EXPECT_EQ(question.ask(value).result, RungResult::fail);
}

TEST(Audit, NanNeverPasses) {
  Question question(DType::f32, true);
  const Values a = rounded(DType::f32, normal(64, 1));
  question.add_part(a, 1);
  Values value = a;
  value[0] = std::nan("");
  const Audit answer = question.ask(value);
  EXPECT_EQ(answer.result, RungResult::fail);
  EXPECT_EQ(answer.made, 1U);
}

TEST(Audit, SketchOfNonFiniteValuesIsInconclusive) {
  Question question(DType::f32, false);
  Values a = normal(64, 1);
  a[0] = std::nan("");
  question.add_part(a, 1);
  EXPECT_EQ(question.ask(a).result, RungResult::inconclusive);
}

TEST(Audit, SizesThatDifferAreInconclusive) {
  Question question(DType::f32, true);
  question.add_part(normal(64, 1), 1);
  EXPECT_EQ(question.ask(normal(32, 1)).result, RungResult::inconclusive);
}

TEST(Audit, BoundThatSaysNothingIsSkippedAndSaidSo) {
  Question question(DType::bf16, true);
  std::vector<Values> locals;
  for (std::uint64_t r = 0; r < 130; ++r) {
    locals.push_back(rounded(DType::bf16, normal(64, r)));
    question.add_part(locals.back(), 1.0 / 130);
  }
  const Audit answer = question.ask(ddp_mean(DType::bf16, locals));
  EXPECT_EQ(answer.result, RungResult::inconclusive);
  EXPECT_FALSE(answer.reason.empty());
}

// Errors of the largest size that the bound allows, in the shapes that gradients take.
struct Shape {
  const char* name;
  std::size_t first, stride, count;  // elements that carry an error
};

TEST(Audit, SketchNeverMagnifiesAnErrorNearTheSlackOfThree) {
  constexpr std::size_t kRows = 64, kColumns = 96;
  std::mt19937_64 engine(7);
  std::normal_distribution<double> draw;
  double worst = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::size_t row = engine() % kRows, column = engine() % kColumns;
    for (const Shape& shape :
         {Shape{"dense", 0, 1, kRows * kColumns}, Shape{"row", row * kColumns, 1, kColumns},
          Shape{"column", column, kColumns, kRows}, Shape{"sparse", row, 97, 5},
          Shape{"pair", column, 1024, 2}}) {
      Values error(kRows * kColumns);
      const bool equal = trial % 2 == 0;  // all at the full bound, or random ones
      for (std::size_t k = 0; k < shape.count; ++k) {
        error[shape.first + k * shape.stride] = equal ? (engine() % 2 ? 1 : -1) : draw(engine);
      }
      worst = std::max(worst, sketch_norm(error) / norm(error));
    }
  }
  EXPECT_LT(worst, 2.3);  // a right tensor fails at 3
}

TEST(Audit, SketchPassesErrorsAtTheFullBoundAndFindsLargerOnes) {
  int found = 0;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    Question question(DType::f32, false);
    const Values a = rounded(DType::f32, normal(2000, trial * 2));
    const Values b = rounded(DType::f32, normal(2000, trial * 2 + 1));
    question.add_part(a, 0.5);
    question.add_part(b, 0.5);
    const double gamma = 4 * unit_roundoff(DType::f32);
    Values right = plus(DType::f64, times(DType::f64, a, 0.5), times(DType::f64, b, 0.5));
    Values wrong = right;
    for (std::size_t i = 0; i < right.size(); ++i) {
      const double scale = 0.5 * (std::abs(a[i]) + std::abs(b[i]));
      right[i] += (i % 2 ? 1 : -1) * 0.5 * gamma * scale;
      wrong[i] += (i % 2 ? 1 : -1) * 12 * gamma * scale;
    }
    EXPECT_EQ(question.ask(right).result, RungResult::pass);
    found += question.ask(wrong).result == RungResult::fail;
  }
  EXPECT_EQ(found, 200);
}

TEST(Audit, SketchOfTenMillionDoublesKeepsItsOwnRoundingOutOfTheVerdict) {
  constexpr std::size_t kElements = 10'000'000;
  Question question(DType::f64, false);
  const std::vector<Values> locals = {normal(kElements, 1), normal(kElements, 2)};
  for (const Values& local : locals) question.add_part(local, 0.5);
  const Audit answer = question.ask(ddp_mean(DType::f64, locals));
  EXPECT_EQ(answer.result, RungResult::pass) << *answer.bound_used;
}

}  // namespace
}  // namespace gradcheck
