// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/errors.h"
#include "model/json/scenario.h"

namespace gradcheck {
namespace {

using testing::HasSubstr;

constexpr const char* kNative = R"("model": "qwen3_0_6b", "trainer": "kto", "loss": "chunked")";

// A right file "s.json" whose members can be replaced one by one.
struct File {
  std::string program = std::string("{\"native\": {") + kNative + "}}";
  std::string arms = R"([{"name": "a", "expect": {"outcome": "consistent"}}])";
  std::string more;  // further members, each with a comma before it

  std::string text() const {
    return "{\"name\": \"s\", \"program\": " + program + ", \"arms\": " + arms + more + "}";
  }
};

std::vector<Scenario> decode(const std::string& text) {
  return scenarios_from_json(text, "folder/s.json");
}

std::string error_of(const std::string& text) {
  try {
    decode(text);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of_arms(const std::string& arms) {
  File file;
  file.arms = arms;
  return error_of(file.text());
}

std::string error_of_expect(const std::string& expect) {
  return error_of_arms(R"([{"name": "a", "expect": )" + expect + "}]");
}

std::string error_of_member(const std::string& member) {
  File file;
  file.more = ", " + member;
  return error_of(file.text());
}

TEST(Decoder, FillsInEveryDefault) {
  const Scenario scenario = decode(File().text()).at(0);
  EXPECT_EQ(scenario.name, "s");
  EXPECT_EQ(scenario.file, "folder/s.json");
  EXPECT_EQ(scenario.ranks, 2);
  EXPECT_EQ(scenario.steps, 1);
  EXPECT_EQ(scenario.timeout_s, 120);
  NativeProgram expected;
  expected.model = "qwen3_0_6b";
  expected.trainer = "kto";
  expected.loss = "chunked";
  EXPECT_EQ(scenario.arms.at(0).program.native, expected);
}

TEST(Decoder, APathThatIsNotNamedFollowsWrapperAndLoss) {
  const std::string ddp = R"("wrapper": {"kind": "ddp"})";
  File file;
  file.arms = R"([{"name": "a", "change": {"native": {)" + ddp + R"(}}, "expect": {"of": 1}},
                  {"name": "b", "change": {"native": {)" +
              ddp + R"(, "loss": "dense"}},
                   "expect": {"of": 1}},
                  {"name": "c", "expect": {"of": 1}}])";
  std::vector<std::string> paths;
  const Scenario scenario = decode(file.text()).at(0);  // outlives the loop over its arms
  for (const Arm& arm : scenario.arms) paths.push_back(arm.program.native->path);
  EXPECT_THAT(paths, testing::ElementsAre("redirected", "wrapped", "direct"));
}

TEST(Decoder, RefusesAPathThatDoesNotGoWithWrapperOrLoss) {
  const auto error = [](const std::string& native) {
    File file;
    file.program = std::string("{\"native\": {") + kNative + ", " + native + "}}";
    return error_of(file.text());
  };
  EXPECT_EQ(error(R"("path": "redirected")"),
            "folder/s.json: /program/native: path \"redirected\" needs a wrapper");
  EXPECT_THAT(error(R"("path": "direct", "wrapper": {"kind": "ddp"})"),
              HasSubstr("/program/native: path \"direct\" means no wrapper"));
  EXPECT_THAT(error(R"("path": "wrapped", "wrapper": {"kind": "ddp"})"),
              HasSubstr("loss \"chunked\" needs hidden states"));
}

TEST(Decoder, HoldsAChangeToThePathThatItsProgramHas) {
  File file;
  file.program = std::string("{\"native\": {") + kNative +
                 R"(, "wrapper": {"kind": "ddp"}, "path": "redirected"}})";
  file.arms = R"([{"name": "a", "expect": {"of": 1}},
                  {"name": "b", "change": {"native": {"path": "direct"}}, "expect": {"of": 1}}])";
  EXPECT_THAT(error_of(file.text()), HasSubstr("/arms/1/change/native: path \"direct\" means"));
}

TEST(Decoder, AMarkIsSkippedOfAStageThatExists) {
  File file;
  file.program = std::string("{\"native\": {") + kNative +
                 R"(, "fault": {"kind": "skip_mark", "tensor": "redcued"}}})";
  EXPECT_THAT(error_of(file.text()),
              HasSubstr("/program/native/fault/tensor: there is no 'redcued'; did you mean "
                        "'reduced'?"));
}

TEST(Decoder, MergesChangeIntoTheProgramOfItsArmOnly) {
  File file;
  file.arms =
      R"([{"name": "a", "change": {"native": {"wrapper": {"kind": "ddp"}, "path": "unwrapped"}},
                   "expect": {"differed": 1}},
                  {"name": "b", "reference": "a", "expect": {"differed": 0}}])";
  const Scenario scenario = decode(file.text()).at(0);
  EXPECT_EQ(scenario.arms.at(0).program.native->wrapper.kind, "ddp");
  EXPECT_EQ(scenario.arms.at(0).program.native->path, "unwrapped");
  EXPECT_EQ(scenario.arms.at(1).program.native->wrapper.kind, "none");
  EXPECT_EQ(scenario.arms.at(1).reference, "a");
}

TEST(Decoder, NullInAChangeRestoresTheDefault) {
  File file;
  file.program = std::string("{\"native\": {") + kNative + R"(, "dtype": "bf16"}})";
  file.arms = R"([{"name": "a", "change": {"native": {"dtype": null}}, "expect": {"wrong": 0}}])";
  EXPECT_EQ(decode(file.text()).at(0).arms.at(0).program.native->dtype, "fp32");
}

TEST(Decoder, AChangeMayReplaceTheNativeProgramByACommand) {
  File file;
  file.arms = R"([{"name": "a", "change": {"native": null, "command": ["python", "train.py"],
                   "python": {"requires": ["trl"]}}, "expect": {"wrong": 0}}])";
  const Program program = decode(file.text()).at(0).arms.at(0).program;
  EXPECT_FALSE(program.native);
  EXPECT_THAT(program.command->argv, testing::ElementsAre("python", "train.py"));
  EXPECT_THAT(program.command->requirements, testing::ElementsAre("trl"));
}

TEST(Decoder, ReadsARefinementByRanksAndDtype) {
  File file;
  file.arms = R"([{"name": "a", "expect": {"outcome": "consistent", "of": 310,
                   "when": [{"ranks": [1], "dtype": ["bf16"], "expect": {"wrong": 0}}]}}])";
  const Expect expect = decode(file.text()).at(0).arms.at(0).expect;
  ASSERT_EQ(expect.when.size(), 1u);
  EXPECT_THAT(expect.when[0].condition.ranks, testing::ElementsAre(1));
  EXPECT_THAT(expect.when[0].condition.dtypes, testing::ElementsAre("bf16"));
  EXPECT_EQ(expect.when[0].expect.wrong, 0);
}

TEST(Decoder, ReadsAPlan) {
  File file;
  file.more = R"(, "plan": [{"tensor": "*.bias", "role": "frozen"},
                            {"reduction": "factor", "factor": 0.5, "group": [1, 0],
                             "wire_dtype": "bf16"}])";
  const std::vector<PlanRule> plan = decode(file.text()).at(0).plan;
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].tensor, "*.bias");
  EXPECT_EQ(plan[0].role, Role::frozen);
  EXPECT_EQ(plan[1].reduction, Reduction::factor);
  EXPECT_EQ(plan[1].factor, 0.5);
  EXPECT_THAT(plan[1].group, testing::ElementsAre(0, 1));
  EXPECT_EQ(plan[1].wire_dtype, DType::bf16);
}

TEST(Decoder, NamesFileAndPointerOfAnUnknownKeyAndSuggestsTheNearest) {
  EXPECT_EQ(error_of_member(R"("rank": 2)"),
            "folder/s.json: /rank: unknown key 'rank'; did you mean 'ranks'?");
  EXPECT_EQ(error_of_expect(R"({"outcome": "consistent", "difered": 0})"),
            "folder/s.json: /arms/0/expect/difered: unknown key 'difered'; did you mean "
            "'differed'?");
}

TEST(Decoder, PointsIntoTheChangeThatBroughtTheWrongKey) {
  const std::string error = error_of_arms(
      R"([{"name": "a", "change": {"native": {"wrapper": {"kind": "dpp"}}}, "expect": {"of": 1}}])");
  EXPECT_THAT(error, HasSubstr("/arms/0/change/native/wrapper/kind: there is no 'dpp'"));
  EXPECT_THAT(error, HasSubstr("did you mean 'ddp'?"));
}

TEST(Decoder, AMisspeltKeyDoesNotHideBehindNull) {
  const std::string error =
      error_of_arms(R"([{"name": "a", "change": {"native": {"los": null}}, "expect": {"of": 1}}])");
  EXPECT_THAT(error, HasSubstr("/arms/0/change/native/los: the program has no 'los' to remove"));
  EXPECT_THAT(error, HasSubstr("did you mean 'loss'?"));
}

TEST(Decoder, AChangeThatRemovesARequiredPartIsRefusedThere) {
  EXPECT_THAT(error_of_arms(
                  R"([{"name": "a", "change": {"native": {"loss": null}}, "expect": {"of": 1}}])"),
              HasSubstr("/arms/0/change/native: needs the key 'loss'"));
}

TEST(Decoder, EscapesPointersAsRfc6901Says) {
  EXPECT_THAT(error_of_member(R"("a/b~c": 1)"), HasSubstr(": /a~1b~0c: "));
}

TEST(Decoder, RefusesAKeyGivenTwiceAndSaysWhere) {
  EXPECT_EQ(error_of_member(R"("name": "s")"),
            "folder/s.json: /name: the key 'name' is given twice");
  EXPECT_THAT(error_of_arms(R"([{"name": "a", "expect": {"of": 1}},
                                {"name": "b", "expect": {"wrong": 1, "of": 2, "wrong": 1}}])"),
              HasSubstr("/arms/1/expect/wrong: the key 'wrong' is given twice"));
}

TEST(Decoder, TheSameKeyInTwoObjectsIsNotGivenTwice) {
  EXPECT_EQ(error_of_arms(R"([{"name": "a", "expect": {"of": 1}},
                              {"name": "b", "expect": {"of": 1}}])"),
            "no error");
}

TEST(Decoder, RefusesWhatIsNotOneJsonDocument) {
  for (const std::string& text :
       {std::string(), std::string("{"), File().text() + "{}", File().text() + " x",
        "// comment\n" + File().text(), std::string("\0", 1)}) {
    EXPECT_THAT(error_of(text), HasSubstr("folder/s.json: not JSON: ")) << text;
  }
}

TEST(Decoder, RefusesWhatIsNotUtf8AndKeepsItOutOfTheMessage) {
  const std::string error = error_of_member("\"description\": \"\xff\xfe\"");
  EXPECT_THAT(error, HasSubstr("not JSON"));
  EXPECT_TRUE(std::ranges::all_of(error, [](char c) { return c >= ' ' && c <= '~'; }));
}

TEST(Decoder, TenMegabytesOfBracketsAreOneClearError) {
  EXPECT_EQ(error_of(std::string(10'000'000, '[')), "folder/s.json: larger than 1048576 bytes");
  EXPECT_THAT(error_of(std::string(1'000'000, '[')), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(error_of(std::string(64, '[')), HasSubstr("not JSON"));
}

TEST(Decoder, RefusesANumberThatIsNoDouble) {
  EXPECT_THAT(error_of_member(R"("timeout_s": 1e999)"), HasSubstr("not JSON"));
}

TEST(Decoder, NumbersAreIntegersWhereTheirValueIs) {
  File file;
  file.more = R"(, "ranks": 4.0, "seed": 9007199254740992)";
  EXPECT_EQ(decode(file.text()).at(0).ranks, 4);
  EXPECT_EQ(decode(file.text()).at(0).seed, std::uint64_t{1} << 53);
  EXPECT_THAT(error_of_member(R"("ranks": 2.5)"), HasSubstr("/ranks: must be an integer"));
  EXPECT_THAT(error_of_member(R"("ranks": "2")"), HasSubstr("/ranks: must be an integer"));
  EXPECT_THAT(error_of_member(R"("ranks": true)"), HasSubstr("/ranks: must be an integer"));
  EXPECT_THAT(error_of_member(R"("seed": 9007199254740993)"), HasSubstr("/seed: "));
  EXPECT_THAT(error_of_member(R"("seed": 18446744073709551616)"), HasSubstr("/seed: "));
}

TEST(Decoder, TheNameIsTheFilesStem) {
  EXPECT_THROW(scenarios_from_json(File().text(), "folder/t.json"), ScenarioError);
  EXPECT_NO_THROW(scenarios_from_json(File().text(), "s.json"));
}

TEST(Decoder, RefusesAnExpectationThatDemandsNothing) {
  EXPECT_THAT(error_of_expect("{}"), HasSubstr("/arms/0/expect: demands nothing"));
  EXPECT_THAT(error_of_expect(R"({"when": [{"ranks": [1], "expect": {"of": 1}}]})"),
              HasSubstr("/arms/0/expect: demands nothing"));
  EXPECT_THAT(error_of_expect(R"({"of": 1, "when": [{"ranks": [1], "expect": {}}]})"),
              HasSubstr("/arms/0/expect/when/0/expect: demands nothing"));
}

TEST(Decoder, RefusesAContradictionThatOnlyARefinementMakes) {
  EXPECT_THAT(error_of_expect(R"({"outcome": "inconsistent", "differed": 3, "of": 3,
                                  "when": [{"ranks": [4], "expect": {"of": 2}}]})"),
              HasSubstr("/arms/0/expect/when/0/expect: differed 3"));
}

TEST(Decoder, SuggestsCodesAndCauses) {
  EXPECT_THAT(error_of_expect(R"({"codes": ["GC2011"]})"), HasSubstr("did you mean 'GC201'?"));
  EXPECT_THAT(error_of_expect(R"({"causes": ["bypas"]})"), HasSubstr("did you mean 'bypass'?"));
}

TEST(Decoder, RefusesBadArms) {
  EXPECT_THAT(error_of_arms("[]"), HasSubstr("/arms: must not be empty"));
  EXPECT_THAT(error_of_arms(R"([{"name": "a", "expect": {"of": 1}},
                                {"name": "a", "expect": {"of": 1}}])"),
              HasSubstr("/arms/1: there are two arms 'a'"));
  EXPECT_THAT(error_of_arms(R"([{"name": "a", "reference": "b", "expect": {"of": 1}}])"),
              HasSubstr("/arms/0/reference: there is no arm 'b'"));
  EXPECT_THAT(error_of_arms(R"([{"name": "a", "reference": "a", "expect": {"of": 1}}])"),
              HasSubstr("own reference"));
}

TEST(Decoder, RefusesAFaultThatWouldNeverStrike) {
  File file;
  file.program = std::string("{\"native\": {") + kNative +
                 R"(, "fault": {"kind": "kill", "rank": 2, "phase": "forward"}}})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("/arms/0: its fault is on rank 2"));
  file.more = R"(, "ranks": 3)";
  EXPECT_EQ(error_of(file.text()), "no error");
}

TEST(Matrix, ExpandsInFileOrderWithTheLastKeyFastest) {
  File file;
  file.more = R"(, "matrix": {"ranks": [4, 2], "dtype": ["bf16", "fp32"]})";
  std::vector<std::string> names;
  for (const Scenario& scenario : decode(file.text())) names.push_back(scenario.name);
  EXPECT_THAT(names, testing::ElementsAre("s[ranks=4,dtype=bf16]", "s[ranks=4,dtype=fp32]",
                                          "s[ranks=2,dtype=bf16]", "s[ranks=2,dtype=fp32]"));
}

TEST(Matrix, KeysKeepTheOrderOfTheFileNotOfTheAlphabet) {
  File file;
  file.more = R"(, "matrix": {"steps": [2], "seed": [3.0], "micro_steps": [4], "dtype": ["bf16"]})";
  const Scenario scenario = decode(file.text()).at(0);
  EXPECT_EQ(scenario.name, "s[steps=2,seed=3,micro_steps=4,dtype=bf16]");
  EXPECT_EQ(scenario.steps, 2);
  EXPECT_EQ(scenario.seed, 3u);
  EXPECT_EQ(scenario.micro_steps, 4);
  EXPECT_EQ(scenario.arms.at(0).program.native->dtype, "bf16");
}

TEST(Matrix, RefusesRepeatedValuesAndCommandsWithADtype) {
  EXPECT_THAT(error_of_member(R"("matrix": {"ranks": [2, 2.0]})"),
              HasSubstr("/matrix/ranks/1: 2 is given twice"));
  File file;
  file.program = R"({"command": ["python", "train.py"]})";
  file.more = R"(, "matrix": {"dtype": ["bf16"]})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("/matrix/dtype/0: arm 'a' is a command"));
}

TEST(Matrix, AThousandScenariosAreEnough) {
  std::string seeds;
  for (int i = 0; i < 40; ++i) seeds += (i ? "," : "") + std::to_string(i + 1);
  EXPECT_THAT(
      error_of_member("\"matrix\": {\"seed\": [" + seeds + "], \"steps\": [" + seeds + "]}"),
      HasSubstr("/matrix/steps: the matrix makes more than 1000"));
}

TEST(Matrix, AnExpectedRankMustExistInEveryScenario) {
  File file;
  file.arms = R"([{"name": "a", "expect": {"outcome": "raised", "raises": {"ranks": [1]}}}])";
  file.more = R"(, "matrix": {"ranks": [2, 1]})";
  EXPECT_THAT(error_of(file.text()), HasSubstr("(s[ranks=1])"));
}

}  // namespace
}  // namespace gradcheck
