// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/native_parts.h"

namespace gradcheck::native {
namespace {

// What a path leads to under a wrapper: seed of the truth table, measured by scenarios guard_*.
std::string consequence(const std::string& path, const std::string& kind) {
  if (path != "unwrapped" || kind == "zero2") return "right";
  return kind == "ddp" ? "desynchronises" : "raises";
}

struct Row {
  const char* kind;
  std::map<std::string, bool> redirects;  // by guard
};

const std::vector<Row>& table() {
  static const std::vector<Row> kTable = {
      {"none",
       {{"old", false},
        {"identity", false},
        {"final", false},
        {"always", true},
        {"never", false},
        {"identity_without_fsdp", false}}},
      {"ddp",
       {{"old", false},
        {"identity", true},
        {"final", true},
        {"always", true},
        {"never", false},
        {"identity_without_fsdp", true}}},
      {"zero2",
       {{"old", false},
        {"identity", true},
        {"final", true},
        {"always", true},
        {"never", false},
        {"identity_without_fsdp", true}}},
      {"zero3",
       {{"old", true},
        {"identity", true},
        {"final", true},
        {"always", true},
        {"never", false},
        {"identity_without_fsdp", true}}},
      {"fsdp1",
       {{"old", true},
        {"identity", true},
        {"final", true},
        {"always", true},
        {"never", false},
        {"identity_without_fsdp", true}}},
      {"fsdp2",
       {{"old", true},
        {"identity", true},
        {"final", true},
        {"always", true},
        {"never", false},
        {"identity_without_fsdp", false}}},
  };
  return kTable;
}

TEST(Guard, DecidesAsTheTruthTableSays) {
  for (const Row& row : table()) {
    for (const auto& [guard, expected] : row.redirects) {
      EXPECT_EQ(redirects(guard, seen_of(row.kind)), expected) << guard << " under " << row.kind;
    }
  }
}

TEST(Guard, TheTableHasEveryGuardAndEveryWrapper) {
  EXPECT_EQ(table().size(), native_wrappers().size());
  for (const Row& row : table()) {
    EXPECT_TRUE(contains(native_wrappers(), row.kind));
    EXPECT_EQ(row.redirects.size(), native_guards().size());
    for (const NativePart& guard : native_guards()) {
      EXPECT_TRUE(row.redirects.contains(std::string(guard.name))) << guard.name;
    }
  }
}

// Rows in which a guard leads elsewhere than the final one does.
std::set<std::string> told_apart_by(const std::string& guard) {
  std::set<std::string> kinds;
  for (const Row& row : table()) {
    const auto lead = [&](const std::string& g) {
      return consequence(path_of(g, row.kind), row.kind);
    };
    if (lead(guard) != lead("final")) kinds.insert(row.kind);
  }
  return kinds;
}

// A test that passes against `if true` is what the original lacked: each mutant has its row.
TEST(Guard, EveryMutantIsToldApartByARow) {
  using testing::ElementsAre;
  EXPECT_THAT(told_apart_by("old"), ElementsAre("ddp"));
  EXPECT_THAT(told_apart_by("never"), ElementsAre("ddp", "fsdp1", "fsdp2", "zero3"));
  EXPECT_THAT(told_apart_by("identity_without_fsdp"), ElementsAre("fsdp2"));
  EXPECT_THAT(told_apart_by("identity"), ElementsAre());  // the same decisions: a term too many
  EXPECT_THAT(told_apart_by("always"), ElementsAre());    // by its decision alone, in one process
  EXPECT_TRUE(redirects("always", seen_of("none")));
  EXPECT_FALSE(redirects("final", seen_of("none")));
}

TEST(Guard, SaysWhatItSaw) {
  EXPECT_EQ(decision_text("final", "fsdp2"),
            "guard final: redirect (the model is the unwrapped one, FSDP)");
  EXPECT_EQ(decision_text("old", "ddp"), "guard old: direct (the model is not the unwrapped one)");
}

TEST(Guard, AnUnknownGuardIsRefused) {
  EXPECT_THROW(redirects("sometimes", {}), std::invalid_argument);
}

}  // namespace
}  // namespace gradcheck::native
