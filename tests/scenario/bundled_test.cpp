// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/finding.h"
#include "model/native_parts.h"
#include "model/plan.h"
#include "scenario/catalog.h"

// The scenarios and the schema that ship.

namespace gradcheck {
namespace {

const std::string kFolder = GRADCHECK_SOURCE_DIR "/scenarios";

TEST(Bundled, EveryScenarioIsRightAndDescribed) {
  const Catalog catalog = load_catalog(kFolder);
  for (const BrokenFile& file : catalog.broken) ADD_FAILURE() << file.error.what();
  EXPECT_GE(catalog.scenarios.size(), 9u);
  for (const Scenario& scenario : catalog.scenarios) {
    EXPECT_FALSE(scenario.description.empty()) << scenario.name;
    EXPECT_FALSE(scenario.tags.empty()) << scenario.name;
  }
}

TEST(Bundled, KtoLigerDdpCarriesItsNegativeControl) {
  const auto found = select(load_catalog(kFolder), {{"kto_liger_ddp"}, "", false});
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].arms.size(), 2u);
  EXPECT_EQ(found[0].arms[0].expect.outcome, Outcome::inconsistent);
  EXPECT_EQ(found[0].arms[0].expect.differed, 310);
  EXPECT_EQ(found[0].arms[1].expect.outcome, Outcome::consistent);
  EXPECT_EQ(found[0].arms[1].expect.differed, 0);
}

// The schema's lists of names against the tables that own them.

nlohmann::json definitions() {
  std::ifstream stream(kFolder + "/schema/scenario-1.schema.json");
  return nlohmann::json::parse(stream)["definitions"];
}

using Words = std::vector<std::string>;

Words words_of(std::span<const NativePart> parts) {
  Words words;
  for (const NativePart& part : parts) words.emplace_back(part.name);
  return words;
}

template <typename Enum>
Words words_up_to(Enum last) {
  Words words;
  for (int i = 0; i <= static_cast<int>(last); ++i) words.emplace_back(name_of(Enum(i)));
  return words;
}

TEST(Schema, KnowsTheNativeParts) {
  const nlohmann::json known = definitions();
  EXPECT_EQ(known["model"]["enum"], words_of(native_models()));
  EXPECT_EQ(known["trainer"]["enum"], words_of(native_trainers()));
  EXPECT_EQ(known["loss"]["enum"], words_of(native_losses()));
  EXPECT_EQ(known["objective"]["enum"], words_of(native_objectives()));
  EXPECT_EQ(known["labels"]["enum"], words_of(native_labels()));
  EXPECT_EQ(known["rewards"]["enum"], words_of(native_rewards()));
  EXPECT_EQ(known["idle_expert"]["enum"], words_of(native_idle_expert()));
  EXPECT_EQ(known["wrapper_kind"]["enum"], words_of(native_wrappers()));
  EXPECT_EQ(known["path"]["enum"], words_of(native_paths()));
  EXPECT_EQ(known["guard"]["enum"], words_of(native_guards()));
  EXPECT_EQ(known["backend"]["enum"], words_of(native_backends()));
  EXPECT_EQ(known["dtype"]["enum"], words_of(native_dtypes()));
  EXPECT_EQ(known["data"]["enum"], words_of(native_data()));
  EXPECT_EQ(known["no_sync"]["enum"], words_of(native_no_sync()));
  EXPECT_EQ(known["hook"]["enum"], words_of(native_hooks()));
  EXPECT_EQ(known["fault_kind"]["enum"], words_of(fault_kinds()));
  EXPECT_EQ(known["fault_phase"]["enum"], words_of(fault_phases()));
  EXPECT_EQ(known["stage"]["enum"], words_up_to(Stage::next_forward));
}

TEST(Schema, KnowsTheCodesAndCauses) {
  Words codes, causes;
  for (const CodeInfo& info : all_codes()) codes.push_back(code_text(info.code));
  for (const CauseInfo& info : all_causes()) causes.emplace_back(info.name);
  EXPECT_EQ(definitions()["code"]["enum"], codes);
  EXPECT_EQ(definitions()["cause"]["enum"], causes);
}

TEST(Schema, KnowsTheWordsOfPlansAndOutcomes) {
  const nlohmann::json known = definitions();
  const nlohmann::json& rule = known["plan_rule"]["properties"];
  EXPECT_EQ(rule["role"]["enum"], words_up_to(Role::undeclared));
  EXPECT_EQ(rule["reduction"]["enum"], words_up_to(Reduction::unknown));
  EXPECT_EQ(rule["buffers"]["enum"], words_up_to(BufferPolicy::undeclared));
  EXPECT_EQ(rule["wire_dtype"]["enum"], words_up_to(DType::bf16));
  EXPECT_EQ(known["expect"]["properties"]["outcome"]["enum"], words_up_to(Outcome::error));
}

}  // namespace
}  // namespace gradcheck
