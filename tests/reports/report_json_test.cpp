// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "full_report.h"
#include "golden.h"
#include "made_up_reports.h"
#include "model/errors.h"
#include "model/evidence_table.h"
#include "model/json/report.h"

namespace gradcheck::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string error_of(const std::string& text) {
  try {
    report_from_json(text, "run.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ReportJson, EveryFieldComesBack) {
  const std::string text = report_to_json(full_report());
  EXPECT_EQ(report_to_json(report_from_json(text, "full.json")), text);
  expect_golden("full.json", text + "\n");
}

// tests/test_report_schema.py checks keys; spellings come from the tables.
TEST(ReportJson, TheSchemaKnowsEverySpelling) {
  const std::string schema = read_file(std::filesystem::path(GRADCHECK_SOURCE_DIR) /
                                       "reports/schema/report-1.schema.json");
  const auto expect_known = [&schema](auto first, auto last) {
    for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
      const std::string name(name_of(static_cast<decltype(first)>(i)));
      EXPECT_THAT(schema, HasSubstr("\"" + name + "\""));
    }
  };
  for (const CauseInfo& info : all_causes()) expect_known(info.cause, info.cause);
  expect_known(Outcome::consistent, Outcome::skipped);
  expect_known(Verdict::pass, Verdict::skip);
  expect_known(RungResult::pass, RungResult::not_applicable);
  expect_known(Severity::note, Severity::error);
  expect_known(Confidence::possible, Confidence::certain);
  expect_known(TensorKind::param, TensorKind::buffer);
  expect_known(Role::shared, Role::undeclared);
  expect_known(Reduction::mean, Reduction::unknown);
  expect_known(BufferPolicy::must_equal, BufferPolicy::undeclared);
  expect_known(PlanSource::declared, PlanSource::none);
  expect_known(DType::f64, DType::other);
  expect_known(RankEnd::running, RankEnd::deadline);
  expect_known(Regime::same_kernels, Regime::quantised);
  expect_known(BandLevel::pass, BandLevel::fail);
}

TEST(ReportJson, ValuesLandInTheirOwnFields) {
  const Report report = report_from_json(report_to_json(full_report()), "full.json");
  const ArmReport& arm = report.scenarios.at(0).arms.at(0);
  EXPECT_EQ(arm.seed, 18446744073709551615U);
  EXPECT_EQ(arm.scope.bytes, 9007199254740993);
  EXPECT_EQ(arm.totals.wrong, 123);
  EXPECT_EQ(arm.totals.smallest_visible_weight, 1.5e-7);
  EXPECT_EQ(arm.findings.at(0).code, 201);
  EXPECT_EQ(arm.causes.at(0).cause, Cause::stale_hook);
  EXPECT_EQ(arm.plan.at(0).wire_dtype, DType::f8_e5m2);
  EXPECT_EQ(arm.plan.at(0).source, PlanSource::siblings);
  EXPECT_EQ(arm.tensors.at(0).rungs.at(0).first, "SHAPE_DTYPE");
  EXPECT_EQ(report.run.world_size, 13);
  EXPECT_EQ(report.run.backend, "gloo");
  EXPECT_EQ(report.run.seed, 18446744073709551614U);
  EXPECT_EQ(report.run.versions.at(1).first, "gloo");
}

TEST(ReportJson, MadeUpReportsComeBack) {
  for (const Report& report : {passed_report(), died_report(), skipped_report(), remarks_report(),
                               weird_report(), not_finite_report()}) {
    const std::string text = report_to_json(report, -1);
    EXPECT_EQ(report_to_json(report_from_json(text, "made_up.json"), -1), text);
  }
}

TEST(ReportJson, NonFiniteNumbersAreNullAndNeverBare) {
  const std::string text = report_to_json(not_finite_report());
  EXPECT_THAT(text, AllOf(Not(HasSubstr(": nan")), Not(HasSubstr("NaN")), Not(HasSubstr(": inf")),
                          HasSubstr("\"duration_s\": null")));
  const Report report = report_from_json(text, "x.json");
  EXPECT_TRUE(std::isnan(report.run.duration_s));
  EXPECT_FALSE(report.scenarios[0].arms[0].totals.max_abs.has_value());
  EXPECT_TRUE(std::isnan(report.scenarios[0].arms[0].tensors[2].weights[0]));
}

TEST(ReportJson, BytesThatAreNotUtf8BecomeTheReplacementCharacter) {
  Report report = passed_report();
  report.scenarios[0].title =
      "a\xff"
      "b";
  EXPECT_THAT(report_to_json(report), HasSubstr("a\xef\xbf\xbd"
                                                "b"));
}

TEST(ReportJson, KeysThatAreNotKnownAreIgnored) {
  const std::string text = report_to_json(full_report());
  const std::string longer =
      with(text, "\"tool_version\"", "\"later\": {\"x\": [1]}, \"tool_version\"");
  EXPECT_EQ(report_to_json(report_from_json(longer, "x.json")), text);
}

TEST(ReportJson, SpellingsOfANewerMinorReadAsTheDefaultAndNeverAsAPass) {
  std::string text = report_to_json(full_report());
  text = with(text, "\"schema_minor\": 3", "\"schema_minor\": 9");
  text = with(text, "\"stale_hook\"", "\"cause_of_a_later_version\"");
  text = with(text, "\"SHAPE_DTYPE\": \"inconclusive\"", "\"SHAPE_DTYPE\": \"later\"");
  text = with(text, "\"GC201\"", "\"GC999\"");
  const Report report = report_from_json(text, "x.json");
  const ArmReport& arm = report.scenarios[0].arms[0];
  EXPECT_EQ(arm.causes[0].cause, Cause::unexplained);
  EXPECT_EQ(arm.tensors[0].rungs[0].second, RungResult::inconclusive);
  EXPECT_EQ(arm.findings[0].code, 999);
}

TEST(ReportJson, AReportOfVersion10HasNoProbeAndLoads) {
  std::string text =
      with(report_to_json(full_report()), "\"schema_minor\": 3", "\"schema_minor\": 0");
  text = with(text, "\"probe\": \"python\",", "");
  EXPECT_EQ(report_from_json(text, "x.json").scenarios[0].arms[0].probe, "native");
}

TEST(ReportJson, WrongTypesAreNamedWithTheirPlace) {
  const std::string text = report_to_json(full_report());
  EXPECT_EQ(
      error_of(with(text, "\"differed\": 122", "\"differed\": \"122\"")),
      "cannot read report run.json: /scenarios/0/arms/0/totals/differed must be a whole number");
  EXPECT_THAT(error_of(with(text, "\"exit_code\": 24", "\"exit_code\": 99999999999")),
              HasSubstr("/summary/exit_code is out of range"));
  EXPECT_THAT(error_of(with(text, "\"an-id\"", "null")), HasSubstr("/run/id must be a string"));
  EXPECT_THAT(error_of(with(text, "\"stale_hook\"", "\"bad\"")),
              HasSubstr("/causes/0/cause has a value that is not known: bad"));
  EXPECT_THAT(error_of(with(text, "\"GC201\"", "\"GC\"")), HasSubstr("must be a finding code"));
  EXPECT_THAT(error_of(with(text, "\"scenarios\": [", "\"scenarios\": [7, ")),
              HasSubstr("/scenarios/0 must be an object"));
}

TEST(ReportJson, AMissingCountIsNotZero) {
  EXPECT_THAT(error_of(with(report_to_json(full_report()), "\"wrong\": 123,", "")),
              HasSubstr("/scenarios/0/arms/0/totals lacks the key wrong"));
}

TEST(ReportJson, OtherSchemasAreRefusedInOneSentence) {
  EXPECT_EQ(error_of(R"({"schema": "report-2"})"),
            "cannot read report run.json: its schema is report-2; this gradcheck reads report-1");
  EXPECT_THAT(error_of(R"({"schema": 1})"), HasSubstr("it is not a gradcheck report"));
  EXPECT_THAT(error_of("[]"), HasSubstr("it is not a gradcheck report"));
}

TEST(ReportJson, HostileTextsAreRefusedQuickly) {
  std::string keys = "{";
  for (int i = 0; i < 200'000; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_THAT(error_of(keys + "\"z\":0}"), HasSubstr("too many keys"));
  EXPECT_THAT(error_of(std::string(1 << 20, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of(std::string(kMaxReportBytes + 1, ' ')), HasSubstr("too large"));
  EXPECT_THAT(error_of(""), HasSubstr("it is empty"));
  EXPECT_THAT(error_of("{\"schema\": \"report-1\", \"\xff\": 1}"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"schema\": \"report-1\", \"x\": 1e999}"), HasSubstr("out of range"));
  EXPECT_THAT(error_of("{\"schema\": NaN}"), HasSubstr("it is not JSON: wrong at byte 12"));
}

// Cut anywhere, a report is an error and never a shorter report.
TEST(ReportJson, TruncatedTextsAreErrors) {
  const std::string text = report_to_json(full_report(), -1);
  for (std::size_t size = 0; size < text.size(); size += 7) {
    EXPECT_THAT(error_of(text.substr(0, size)), HasSubstr("cannot read report run.json: "));
  }
}

// Whatever one byte does to a report, reading it ends in a report or in a UsageError.
TEST(ReportJson, AnyByteMayBeWrong) {
  const std::string text = report_to_json(full_report(), -1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'"', '9', '{', ']', '\\', '\xff'}) {
      std::string broken = text;
      broken[i] = byte;
      EXPECT_NO_THROW(error_of(broken)) << i;
    }
  }
}

}  // namespace
}  // namespace gradcheck::test
