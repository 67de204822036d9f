// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>

#include "model/json/log_prob_fields.h"
#include "model/report.h"

namespace gradcheck::test {

// Every field of report-1 set, every number another, no string, array or optional empty: what a
// round trip loses or swaps shows. tests/test_report_schema.py checks that it stays so.

inline void fill_rows(ArmReport& arm) {
  arm.models = {{"actor", 40, 41, 42, 43, 44}};
  arm.steps = {{50, 51, 52, 53, 54, 5.5}};
  arm.rungs = {{"PRESENT", 60, 61, 62, 63, "a rung's reason"}};
  arm.findings = {
      {201, Severity::warning, "a message", "critic", 70, {71, 72}, {"a.weight"}, 73, "a hint"}};
  arm.causes = {{Cause::stale_hook,
                 Confidence::likely,
                 "reward",
                 "train.py:12",
                 {"evidence for"},
                 {"evidence against"},
                 "a next step"}};
  TensorRow tensor{
      "rollout",    "b.weight",
      {80, 81},     "bf16",
      82,           true,
      true,         "mixed",
      "{0}{1}",     8.25,
      true,         83,
      true,         true,
      0.84,         "sketch",
      {8.5, 8.625}, {{"SHAPE_DTYPE", RungResult::inconclusive}, {"PRESENT", RungResult::fail}}};
  arm.tensors = {tensor};
  arm.plan = {{"policy",
               "c.weight",
               TensorKind::buffer,
               Role::rank_local,
               Reduction::factor,
               9.25,
               {90, 91},
               DType::f8_e5m2,
               BufferPolicy::must_equal,
               "d.weight",
               PlanSource::siblings}};
  arm.ranks = {
      {100, "signalled", 101, "backward", "a last record", "ValueError", "its text", "a tail"}};
  arm.notes = {"a note"};
}

// Sets every field of a reading: numbers count up from 2000, each list has one row.
class Filler {
 public:
  void operator()(const char* key, std::string& text) { text = std::string("the ") + key; }
  void operator()(const char*, bool& value) { value = true; }
  void operator()(const char*, std::integral auto& number) { number = next_++; }
  void operator()(const char*, double& number) { number = next_++ + 0.5; }
  void operator()(const char*, std::vector<std::string>& texts) { texts = {"another note"}; }

  template <typename T>
    requires std::is_enum_v<T>
  void operator()(const char*, T& value) {
    value = static_cast<T>(1);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    (*this)(key, value.emplace());
  }
  template <typename Row>
    requires std::is_class_v<Row>
  void operator()(const char* key, std::vector<Row>& rows) {
    (*this)(key, rows.emplace_back());
  }
  template <typename Row>
    requires std::is_class_v<Row>
  void operator()(const char*, Row& row) {
    report_json::fields(*this, row);
  }

 private:
  int next_ = 2000;
};

inline LogProbReading full_reading() {
  LogProbReading reading;
  Filler filler;
  report_json::fields(filler, reading);
  reading.regime_source = "inferred";
  reading.dtype_source = "given";
  return reading;
}

inline DumpReading full_dumps() {
  DumpReading reading;
  reading.against = "reference";
  reading.tolerance = "ulp=4";
  reading.files = {{"local", 1001, "a/rank1.safetensors", 1002, 1003}};
  reading.tensors = 1010;
  reading.differed = 1011;
  reading.outside = 1012;
  reading.differing_elements = 1013;
  reading.sign_of_zero_elements = 1014;
  reading.nan_payload_elements = 1015;
  reading.sign_changes = 1016;
  reading.nonfinite_elements = 1017;
  reading.max_ulps = 1018;
  reading.max_norm = 10.125;
  reading.ulps = {{1020, 1021, 1022}};
  reading.clusters = {{"{0,1}{2,3}", 1023}};
  reading.rows = {{"model.norm.weight", "{0}{1}", 1030, 1031, 10.25, 10.375, 1032, 1033}};
  return reading;
}

inline ArmReport full_arm() {
  ArmReport arm;
  arm.name = "unwrapped";
  arm.outcome = Outcome::inconclusive;
  arm.expected = Outcome::inconsistent;
  arm.verdict = Verdict::fail;
  arm.reason = "an arm's reason";
  arm.headline = "a headline";
  arm.world_size = 110;
  arm.backend = "nccl";
  arm.dtype = "fp64";
  arm.probe = "python";
  arm.seed = 18446744073709551615U;
  arm.duration_s = 0.1;
  arm.scope = {111, 112, 113, 9007199254740993, {"loss normalisation"}};
  arm.totals = {120, 121, 122, 123, 124, 125, 126, 127, 128, 1.25e-300, true, 0.125, 1.5e-7};
  arm.truncated = 130;
  arm.parameters = {140, 141, 142, 143, 144, 14.5};
  arm.buffers = {150, 151, 152, 153, 154, 15.5};
  arm.finals = {160, 161, 162, 163, 164, 16.5};
  arm.events = {170, 171, 172, 173, 174, 175};
  fill_rows(arm);
  arm.logp.push_back({1040, "train", "gradcheck.log_probs", full_reading()});
  arm.dumps.push_back(full_dumps());
  return arm;
}

inline Report full_report() {
  Report report;
  report.schema_minor = kReportSchemaMinor;
  report.tool_version = "0.1.0";
  report.run = {"an-id",
                "2026-01-02T03:04:05Z",
                12.75,
                "a-host",
                13,
                "gloo",
                18446744073709551614U,
                {{"torch", "2.13.0"}, {"gloo", "x"}},
                {"gradcheck", "--all"},
                {{"OMP_NUM_THREADS", "1"}}};
  report.summary = {20, 21, 22, 23, 24, 25, 26, 27};
  ScenarioReport scenario;
  scenario.name = "kto_liger_ddp";
  scenario.file = "scenarios/kto_liger_ddp.json";
  scenario.description = "A description.";
  scenario.source = {"huggingface/trl", 7247, "trl/trainer.py", 30};
  scenario.verdict = Verdict::skip;
  scenario.reason = "a scenario's reason";
  scenario.title = "a title";
  scenario.control_not_run = true;
  scenario.duration_s = 3.25;
  scenario.arms = {full_arm()};
  report.scenarios = {scenario};
  return report;
}

}  // namespace gradcheck::test
