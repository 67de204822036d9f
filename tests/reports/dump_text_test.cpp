// SPDX-License-Identifier: Apache-2.0
#include "reports/dump_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "full_report.h"

namespace gradcheck::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string text_of(const DumpReading& reading, int verbosity = 0) {
  ConsoleOptions options;
  options.width = 0;
  options.verbosity = verbosity;
  Page page(options);
  add_dumps(page, 0, reading);
  return page.take();
}

TEST(DumpText, SaysWhoStandsWithWhomAndHowFarApart) {
  const std::string text = text_of(full_dumps());
  EXPECT_THAT(text, AllOf(HasSubstr("1011 of 1010 tensors differ, 1012 beyond ulp=4"),
                          HasSubstr("{0,1}{2,3} in 1023 tensors"),
                          HasSubstr("1020–1021: 1022; largest 1018"),
                          HasSubstr("1013 elements differ, 1016 of them by sign"),
                          HasSubstr("model.norm.weight"), HasSubstr("a/rank1.safetensors")));
}

TEST(DumpText, SaysNothingOfRanksThatAgree) {
  DumpReading reading;
  reading.against = "ranks";
  reading.tensors = 5;
  EXPECT_THAT(text_of(reading), IsEmpty());
}

TEST(DumpText, NamesFilesAndTensorsUpToALimit) {
  DumpReading reading = full_dumps();
  reading.against = "ranks";
  const DumpFile file = reading.files.front();
  reading.files.assign(20, file);
  const DumpTensor row = reading.rows.front();
  reading.rows.assign(50, row);
  const auto lines = [&](int verbosity) {
    const std::string text = text_of(reading, verbosity);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_LT(lines(0), 25);
  EXPECT_GT(lines(1), 70);
  EXPECT_THAT(text_of(reading), HasSubstr("12 more files with -v"));
}

TEST(DumpText, KeepsItsTablesForWhatIsBeyondTheTolerance) {
  DumpReading reading = full_dumps();
  reading.outside = 0;
  EXPECT_THAT(text_of(reading), AllOf(HasSubstr("ulps"), Not(HasSubstr("model.norm.weight"))));
}

TEST(DumpText, PrintsNamesSafely) {
  DumpReading reading = full_dumps();
  reading.rows.front().name = "a\x1b[31m\n";
  EXPECT_THAT(text_of(reading), AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\n")));
}

}  // namespace
}  // namespace gradcheck::test
