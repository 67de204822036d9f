// SPDX-License-Identifier: Apache-2.0
#include "reports/requests.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "golden.h"
#include "made_up_reports.h"
#include "model/errors.h"

namespace gradcheck::test {
namespace {

namespace fs = std::filesystem;

void tell(FanOut& reports, const Report& report) {
  reports.run_started(report.run);
  for (const ScenarioReport& scenario : report.scenarios) reports.scenario_finished(scenario);
  reports.run_finished(report);
}

TEST(Requests, AreReadFromTheCommandLine) {
  const ReportRequest request = request_from_text("junit=a=b.xml");
  EXPECT_EQ(request.format, "junit");
  EXPECT_EQ(request.path, "a=b.xml");
  for (const char* wrong : {"", "json", "json=", "=x", "xml=out"}) {
    EXPECT_THROW(request_from_text(wrong), UsageError) << wrong;
  }
}

TEST(Requests, StdoutAndFilesAreGivenOnce) {
  const auto open = [](std::string_view format, std::vector<ReportRequest> requests) {
    open_reports(format, requests, {});
  };
  EXPECT_NO_THROW(open("console", {{"json", "-"}, {"junit", "a.xml"}}));
  EXPECT_THROW(open("console", {{"json", "-"}, {"junit", "-"}}), UsageError);
  EXPECT_THROW(open("junit", {{"json", "-"}}), UsageError);
  EXPECT_THROW(open("console", {{"json", "a"}, {"junit", "a"}}), UsageError);
  EXPECT_THROW(open("console", {{"json", "a"}, {"junit", "./a"}}), UsageError);
  EXPECT_THROW(open("xml", {}), UsageError);
  EXPECT_FALSE(fs::exists("a.xml"));
}

// A report that cannot be written costs neither the other file nor stdout.
TEST(Requests, EveryReportIsWrittenThoughOneCannotBe) {
  const Report report = mixed_report();
  const std::string base = testing::TempDir() + "gradcheck_requests_" + std::to_string(::getpid());
  const int out = ::open((base + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ConsoleOptions options;
  options.colour = true;
  const std::vector<ReportRequest> requests = {
      {"json", "/dev/full"}, {"markdown", base + ".md"}, {"console", base + ".txt"}};
  FanOut reports = open_reports("console", requests, options, out);
  tell(reports, report);
  ::close(out);
  EXPECT_EQ(reports.errors().size(), 1U);
  EXPECT_EQ(read_file(base + ".md"), rendered("markdown", report));
  EXPECT_EQ(read_file(base + ".out"), rendered("console", report, options));
  EXPECT_EQ(read_file(base + ".txt"), rendered("console", report));
}

}  // namespace
}  // namespace gradcheck::test
