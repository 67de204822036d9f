// SPDX-License-Identifier: Apache-2.0
#include "reports/text_reporter.h"

#include <utility>

namespace gradcheck {
namespace {

class TextReporter : public Reporter {
 public:
  TextReporter(Sink sink, std::string (*text)(const Report&))
      : sink_(std::move(sink)), text_(text) {}

  void run_started(const RunInfo&) override {}
  void scenario_finished(const ScenarioReport&) override {}
  void run_finished(const Report& report) override {
    sink_.write(text_(report));
    sink_.finish();
  }

 private:
  Sink sink_;
  std::string (*text_)(const Report&);
};

}  // namespace

std::unique_ptr<Reporter> make_text_reporter(Sink sink, std::string (*text)(const Report&)) {
  return std::make_unique<TextReporter>(std::move(sink), text);
}

}  // namespace gradcheck
