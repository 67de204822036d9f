// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "model/finding.h"
#include "model/native_parts.h"

// The words of scenarios/schema/scenario-1.schema.json stand in tables of ours. This test holds
// them equal; with GRADCHECK_UPDATE_GOLDEN=1 it writes them into the schema instead:
//
//   GRADCHECK_UPDATE_GOLDEN=1 build/dev/test_scenario --gtest_filter='ScenarioSchema.*'
namespace gradcheck {
namespace {

constexpr std::size_t kWidth = 100;

// A definition of the schema that is a list of words, and the words.
struct WordList {
  std::string definition;
  std::vector<std::string> words;
};

WordList names_of(std::string definition, std::span<const NativePart> parts) {
  WordList list{std::move(definition), {}};
  for (const NativePart& part : parts) list.words.emplace_back(part.name);
  return list;
}

// Kinds of faults that must name what they strike.
WordList faults_that_need(std::string definition, bool (*needs)(FaultNeeds)) {
  WordList list{std::move(definition), {}};
  for (const NativePart& part : fault_kinds()) {
    if (needs(part.needs)) list.words.emplace_back(part.name);
  }
  return list;
}

WordList codes() {
  WordList list{"code", {}};
  for (const CodeInfo& info : all_codes()) list.words.push_back(code_text(info.code));
  return list;
}

WordList causes() {
  WordList list{"cause", {}};
  for (const CauseInfo& info : all_causes()) list.words.emplace_back(info.name);
  return list;
}

std::vector<WordList> all_lists() {
  return {names_of("model", native_models()),
          names_of("trainer", native_trainers()),
          names_of("loss", native_losses()),
          names_of("objective", native_objectives()),
          names_of("labels", native_labels()),
          names_of("rewards", native_rewards()),
          names_of("reference", native_references()),
          names_of("autocast", native_autocast()),
          names_of("log_softmax", native_log_softmax()),
          names_of("mistake", native_mistakes()),
          names_of("idle_expert", native_idle_expert()),
          names_of("wrapper_kind", native_wrappers()),
          names_of("path", native_paths()),
          names_of("backend", native_backends()),
          names_of("dtype", native_dtypes()),
          names_of("data", native_data()),
          names_of("no_sync", native_no_sync()),
          names_of("hook", native_hooks()),
          names_of("fault_kind", fault_kinds()),
          names_of("fault_phase", fault_phases()),
          faults_that_need("fault_with_phase",
                           [](FaultNeeds needs) { return needs == FaultNeeds::phase; }),
          faults_that_need("fault_with_tensor",
                           [](FaultNeeds needs) {
                             return needs == FaultNeeds::tensor || needs == FaultNeeds::stage;
                           }),
          codes(),
          causes()};
}

// Words in quotes: on one line where they fit behind `column`, otherwise wrapped.
std::string layout(const std::vector<std::string>& words, std::size_t column, std::size_t rest,
                   const std::string& indent) {
  std::string line, lines;
  for (const std::string& word : words) line += (line.empty() ? "\"" : ", \"") + word + '"';
  if (column + line.size() + rest <= kWidth) return line;
  line = indent + " ";
  for (const std::string& word : words) {
    const std::string item = " \"" + word + "\",";
    if (line.size() + item.size() > kWidth) {
      lines += "\n" + line;
      line = indent + " ";
    }
    line += item;
  }
  line.pop_back();  // the last comma
  return lines + "\n" + line + "\n" + indent;
}

// The schema with the words of one definition put into its `enum`.
std::string with_words(const std::string& schema, const WordList& list) {
  constexpr std::string_view kOpen = "\"enum\": [";
  const auto start = schema.find("\n    \"" + list.definition + "\": {");
  if (start == schema.npos) return "no definition " + list.definition;
  const auto open = schema.find(kOpen, start) + kOpen.size();
  const auto close = schema.find(']', open);
  const auto line = schema.rfind('\n', open - 1) + 1;
  const std::string indent(schema.find_first_not_of(' ', line) - line, ' ');
  const std::size_t rest = schema.find('\n', close) - close;
  return schema.substr(0, open) + layout(list.words, open - line, rest, indent) +
         schema.substr(close);
}

TEST(ScenarioSchema, HasTheWordsOfTheTables) {
  const std::string path = GRADCHECK_SOURCE_DIR "/scenarios/schema/scenario-1.schema.json";
  std::ifstream file(path, std::ios::binary);
  const std::string schema{std::istreambuf_iterator<char>(file), {}};
  std::string refreshed = schema;
  for (const WordList& list : all_lists()) refreshed = with_words(refreshed, list);
  if (std::getenv("GRADCHECK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << refreshed;
    return;
  }
  EXPECT_EQ(schema, refreshed);
}

TEST(ScenarioSchema, KeepsAListOnOneLineWhereItFits) {
  EXPECT_EQ(layout({"a", "b"}, 10, 1, "  "), R"("a", "b")");
  EXPECT_EQ(layout({"a", "b"}, 95, 1, "  "), "\n    \"a\", \"b\"\n  ");
}

}  // namespace
}  // namespace gradcheck
