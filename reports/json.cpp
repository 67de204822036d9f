// SPDX-License-Identifier: Apache-2.0
#include "reports/json.h"

#include <utility>

#include "model/json/report.h"

namespace gradcheck {
namespace {

class JsonReporter : public Reporter {
 public:
  explicit JsonReporter(Sink sink) : sink_(std::move(sink)) {}

  void run_started(const RunInfo&) override {}
  void scenario_finished(const ScenarioReport&) override {}
  void run_finished(const Report& report) override {
    sink_.write(report_to_json(report) + "\n");
    sink_.finish();
  }

 private:
  Sink sink_;
};

}  // namespace

std::unique_ptr<Reporter> make_json_reporter(Sink sink) {
  return std::make_unique<JsonReporter>(std::move(sink));
}

}  // namespace gradcheck
