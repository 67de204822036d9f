// SPDX-License-Identifier: Apache-2.0
#include "run/dump_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace gradcheck {
namespace {

std::span<const std::byte> as_bytes(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

Dump dump_of(std::initializer_list<std::pair<const char*, const std::vector<float>*>> tensors) {
  Dump dump;
  dump.mapped = false;
  for (const auto& [name, values] : tensors) {
    dump.tensors[name] = {
        DType::f32, {static_cast<std::int64_t>(values->size())}, as_bytes(*values)};
  }
  return dump;
}

std::span<const Entry> row(const DumpTable& made, Stage stage, const char* name) {
  const auto model = made.table.find_text("");
  const auto id = made.table.find_text(name);
  if (!model || !id) return {};
  return made.table.entries({0, 0, stage, TensorKind::grad, *model, *id});
}

const std::vector<float> kOne(100'000, 1.0F), kZero(100'000, 0.0F);

TEST(DumpTable, HoldsEqualTensorsWithoutMeasuringThem) {
  const std::vector<float> same = kOne;
  const DumpTable made =
      tabulate(std::vector{dump_of({{"w", &kOne}}), dump_of({{"w", &same}})}, {});
  const auto entries = row(made, Stage::reduced, "w");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].digest, entries[1].digest);
  EXPECT_EQ(entries[0].n, 100'000U);
  EXPECT_EQ(entries[0].state, TensorState::finite);
  EXPECT_FALSE(entries[0].measured);
}

TEST(DumpTable, DigestsWhatDiffersInItsLastElement) {
  std::vector<float> other = kOne;
  other.back() = 2;
  const DumpTable made =
      tabulate(std::vector{dump_of({{"w", &kOne}}), dump_of({{"w", &other}})}, {});
  const auto entries = row(made, Stage::reduced, "w");
  EXPECT_NE(entries[0].digest, entries[1].digest);
  EXPECT_TRUE(entries[1].measured);
}

TEST(DumpTable, TellsAbsentZeroAndNonfiniteApart) {
  std::vector<float> poisoned = kOne;
  poisoned[70'000] = std::numeric_limits<float>::quiet_NaN();
  const DumpTable made =
      tabulate(std::vector{dump_of({{"a", &kOne}, {"z", &kZero}, {"n", &poisoned}}),
                           dump_of({{"z", &kZero}, {"n", &poisoned}})},
               {});
  EXPECT_EQ(row(made, Stage::reduced, "a")[1].state, TensorState::absent);
  EXPECT_TRUE(row(made, Stage::reduced, "a")[1].recorded);
  EXPECT_EQ(row(made, Stage::reduced, "z")[1].state, TensorState::zero);
  EXPECT_EQ(row(made, Stage::reduced, "n")[1].state, TensorState::nonfinite);
  EXPECT_EQ(row(made, Stage::reduced, "n")[1].nan, 1U);
}

TEST(DumpTable, MeasuresEverythingWhereThereAreLocals) {
  const std::vector<Dump> ranks = {dump_of({{"w", &kOne}}), dump_of({{"w", &kOne}})};
  const std::vector<Dump> locals = {dump_of({{"w", &kOne}}), dump_of({})};
  const DumpTable made = tabulate(ranks, locals);
  EXPECT_NE(made.table.sketch(row(made, Stage::reduced, "w")[1]), nullptr);
  EXPECT_NE(made.table.sketch(row(made, Stage::local, "w")[0]), nullptr);
  EXPECT_FALSE(row(made, Stage::local, "w")[1].recorded);
}

TEST(DumpTable, KeepsTheOrderOfTheFile) {
  const std::vector<float> all(30, 1.0F);
  Dump dump;
  dump.mapped = false;
  const auto bytes = as_bytes(all);
  dump.tensors["b"] = {DType::f32, {10}, bytes.subspan(0, 40)};
  dump.tensors["c"] = {DType::f32, {10}, bytes.subspan(40, 40)};
  dump.tensors["a"] = {DType::f32, {10}, bytes.subspan(80, 40)};
  const DumpTable made = tabulate(std::vector{dump}, {});
  std::string order;
  for (const RowKey& key : made.table.rows()) order += made.table.text(key.name);
  EXPECT_EQ(order, "bca");
}

}  // namespace
}  // namespace gradcheck
