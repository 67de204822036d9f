// SPDX-License-Identifier: Apache-2.0
#include "scenario/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/errors.h"
#include "scenario/load.h"

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

// A folder of its own, gone with the test.
class CatalogTest : public testing::Test {
 protected:
  CatalogTest() : folder_(fs::temp_directory_path() / ("catalog-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CatalogTest() override { fs::remove_all(folder_); }

  std::string write(const std::string& file, const std::string& text) {
    const fs::path path = folder_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  std::string add(const std::string& name, const std::string& more = "",
                  const std::string& folder = "") {
    return write(folder + name + ".json", "{\"name\": \"" + name +
                                              R"(", "program": {"native": {"model": "qwen3_0_6b",
                  "trainer": "kto", "loss": "dense"}}, "arms": [{"name": "only",
                  "expect": {"outcome": "consistent"}}])" +
                                              more + "}");
  }

  std::vector<std::string> chosen(const Selection& selection) const {
    std::vector<std::string> names;
    for (const Scenario& scenario : select(load_catalog(folder_.string()), selection)) {
      names.push_back(scenario.name);
    }
    return names;
  }

  template <typename Error>
  std::string error_of(const Selection& selection) const {
    try {
      chosen(selection);
    } catch (const Error& error) {
      return error.what();
    }
    return "no such error";
  }

  fs::path folder_;
};

Selection named(std::vector<std::string> names) { return {std::move(names), "", false, {}}; }
Selection filtered(const std::string& filter) { return {{}, filter, false, {}}; }
Selection tagged(std::vector<std::string> tags, const std::string& filter = "") {
  return {{}, filter, false, std::move(tags)};
}
const Selection kAll = {{}, "", true, {}};

TEST_F(CatalogTest, ReadsTheFolderItselfSortedByNameThenThePythonFolder) {
  add("b");
  add("a");
  add("deep", "", "other/");
  add("a_job", "", "python/");
  write("schema/scenario-1.schema.json", "{}");
  write("notes.txt", "no scenario");
  write(".hidden.json", "no scenario");
  EXPECT_THAT(chosen(kAll), ElementsAre("a", "b", "a_job"));
}

TEST_F(CatalogTest, TagsNarrowAndEveryScenarioCarriesItsProbe) {
  add("a", R"(, "tags": ["ddp"])");
  add("b", R"(, "tags": ["ddp", "kto"])");
  add("c");
  write("python/job.json", R"({"name": "job", "program": {"command": ["python", "job.py"]},
                              "arms": [{"name": "only", "expect": {"outcome": "consistent"}}]})");
  EXPECT_THAT(chosen(tagged({"ddp"})), ElementsAre("a", "b"));
  EXPECT_THAT(chosen(tagged({"kto", "python"})), ElementsAre("b", "job"));
  EXPECT_THAT(chosen(tagged({"native"})), ElementsAre("a", "b", "c"));
  EXPECT_THAT(chosen(tagged({"ddp"}, "*-b")), ElementsAre("a"));
  EXPECT_THAT(error_of<UsageError>(tagged({"none", "x"})),
              HasSubstr("no scenario has the tag 'none' or 'x';"));
  EXPECT_THAT(error_of<UsageError>(tagged({"kto"}, "a")),
              HasSubstr("no scenario matches the filter 'a' and has the tag 'kto';"));
}

TEST_F(CatalogTest, ANameIsAScenarioAMatrixOrOneOfItsScenarios) {
  add("one");
  add("many", R"(, "matrix": {"ranks": [4, 2]})");
  EXPECT_THAT(chosen(named({"one"})), ElementsAre("one"));
  EXPECT_THAT(chosen(named({"many"})), ElementsAre("many[ranks=4]", "many[ranks=2]"));
  EXPECT_THAT(chosen(named({"many[ranks=2]"})), ElementsAre("many[ranks=2]"));
}

TEST_F(CatalogTest, KeepsTheOrderOfNamesAndTakesEachScenarioOnce) {
  add("a");
  const std::string b = add("b");
  EXPECT_THAT(chosen({{"b", "a", "b", b}, "a*", true}), ElementsAre("b", "a"));
}

TEST_F(CatalogTest, AnUnknownNameIsAUsageErrorThatSuggestsTheNearest) {
  add("kto_liger_ddp");
  EXPECT_EQ(error_of<UsageError>(named({"kto_liger_dpp"})),
            "unknown scenario 'kto_liger_dpp'; did you mean 'kto_liger_ddp'? `gradcheck --list` "
            "shows all");
  EXPECT_EQ(error_of<UsageError>(named({"zzz"})),
            "unknown scenario 'zzz'; `gradcheck --list` shows all");
}

TEST_F(CatalogTest, NoFolderIsOnlyMissedByNames) {
  const std::string path = add("s", "", "elsewhere/");
  const Catalog nowhere = load_catalog((folder_ / "nowhere").string());
  EXPECT_EQ(select(nowhere, named({path})).size(), 1u);
  EXPECT_THROW(select(nowhere, named({"s"})), UsageError);
  EXPECT_THROW(select(nowhere, kAll), UsageError);
}

TEST_F(CatalogTest, AFilterThatMatchesNothingIsNotAPass) {
  add("a");
  EXPECT_THAT(chosen(filtered("*-b")), ElementsAre("a"));
  EXPECT_THAT(error_of<UsageError>(filtered("a-*")), HasSubstr("no scenario matches"));
  EXPECT_THAT(error_of<UsageError>(filtered("b*")), HasSubstr("'b*'"));
}

TEST_F(CatalogTest, SelectingNothingIsAUsageError) {
  add("a");
  EXPECT_THROW(chosen({}), UsageError);
}

TEST_F(CatalogTest, ABrokenFileSpoilsAllAndFiltersButNoOtherName) {
  add("good");
  write("bad.json", "{");
  EXPECT_THAT(chosen(named({"good"})), ElementsAre("good"));
  EXPECT_THAT(error_of<ScenarioError>(named({"bad"})), HasSubstr("bad.json: not JSON"));
  EXPECT_THAT(error_of<ScenarioError>(kAll), HasSubstr("bad.json"));
  EXPECT_THAT(error_of<ScenarioError>(filtered("good")), HasSubstr("bad.json"));
}

TEST_F(CatalogTest, TwoFilesCannotGiveOneName) {
  add("s");
  const std::string other = add("s", "", "elsewhere/");
  EXPECT_THAT(error_of<UsageError>(named({"s", other})), HasSubstr("two scenarios are called 's'"));
}

TEST_F(CatalogTest, APathMustBeAFileThatIsThere) {
  EXPECT_THAT(error_of<ScenarioError>(named({"./missing.json"})), HasSubstr("no such file"));
  EXPECT_THAT(error_of<ScenarioError>(named({folder_.string() + "/"})), HasSubstr("is not a file"));
}

TEST_F(CatalogTest, APipeDoesNotHangTheReader) {
  const std::string pipe = (folder_ / "pipe.json").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(load_scenarios(pipe), ScenarioError);
}

TEST_F(CatalogTest, AFileThatIsTooLargeIsNotReadWhole) {
  const std::string path = write("large.json", std::string(3 << 20, '['));
  EXPECT_THAT(error_of<ScenarioError>(named({path})), HasSubstr("larger than 1048576 bytes"));
}

}  // namespace
}  // namespace gradcheck
