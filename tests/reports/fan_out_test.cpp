// SPDX-License-Identifier: Apache-2.0
#include "reports/fan_out.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "made_up_reports.h"
#include "model/errors.h"

namespace gradcheck::test {
namespace {

struct Broken : Reporter {
  void run_started(const RunInfo&) override {}
  void scenario_finished(const ScenarioReport&) override { throw InfrastructureError("disk full"); }
  void run_finished(const Report&) override { throw InfrastructureError("still told"); }
};

TEST(FanOut, AReporterThatFailsIsDroppedAndTheOthersGoOn) {
  const Report report = passed_report();
  std::string text;
  FanOut reports;
  reports.add(std::make_unique<Broken>());
  reports.add(find_reporter("console")->make(Sink::to_string(text), {}));
  reports.run_started(report.run);
  reports.scenario_finished(report.scenarios[0]);
  reports.run_finished(report);
  EXPECT_EQ(text, rendered("console", report));
  ASSERT_EQ(reports.errors().size(), 1U);
  EXPECT_EQ(reports.errors()[0], "disk full");
}

}  // namespace
}  // namespace gradcheck::test
