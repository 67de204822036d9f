// SPDX-License-Identifier: Apache-2.0
#include "reports/junit.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <utility>
#include <vector>

#include "reports/console_problem.h"
#include "reports/page.h"
#include "reports/text.h"
#include "reports/words.h"

namespace gradcheck {
namespace {

using pugi::xml_node;

void set(xml_node node, const char* attribute, std::string_view text) {
  node.append_attribute(attribute).set_value(xml_legal(text).c_str());
}

void set(xml_node node, const char* attribute, std::int64_t number) {
  set(node, attribute, std::to_string(number));
}

// Three decimals: the schema of surefire refuses more.
void set_time(xml_node node, double seconds_taken) {
  set(node, "time", fmt::format("{:.3f}", std::isfinite(seconds_taken) ? seconds_taken : 0));
}

// "name", then "name (2)": dashboards keep one of two alike.
class UniqueNames {
 public:
  std::string operator()(std::string_view name) {
    const std::string base = name_or_unnamed(name);
    std::string candidate = base;
    for (int n = 2; !used_.emplace(candidate, true).second; ++n) {
      candidate = fmt::format("{} ({})", base, n);
    }
    return candidate;
  }

 private:
  std::map<std::string, bool> used_;
};

struct Counts {
  std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;

  void add(Verdict verdict) {
    ++tests;
    failures += verdict == Verdict::fail ? 1 : 0;
    errors += verdict == Verdict::error ? 1 : 0;
    skipped += verdict == Verdict::skip ? 1 : 0;
  }
  void add(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
  }
};

void set_counts(xml_node node, const Counts& counts) {
  set(node, "tests", counts.tests);
  set(node, "failures", counts.failures);
  set(node, "errors", counts.errors);
  set(node, "skipped", counts.skipped);
}

void add_property(xml_node properties, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  xml_node property = properties.append_child("property");
  set(property, "name", name);
  set(property, "value", value);
}

// Of the first arm; the command line sets them for all arms alike.
void add_properties(xml_node suite, const RunInfo& run, const ScenarioReport& scenario) {
  xml_node properties = suite.append_child("properties");
  if (!scenario.arms.empty()) {
    const ArmReport& arm = scenario.arms.front();
    add_property(properties, "seed", std::to_string(arm.seed));
    add_property(properties, "ranks", std::to_string(arm.world_size));
    add_property(properties, "backend", arm.backend);
    add_property(properties, "dtype", arm.dtype);
  }
  for (const auto& [name, version] : run.versions) {
    add_property(properties, "version." + name, version);
  }
}

const char* element_of(Verdict verdict) {
  if (verdict == Verdict::skip) return "skipped";
  return verdict == Verdict::fail ? "failure" : "error";
}

// "GC201" where a finding says it, else the outcome.
std::string type_of(const ArmReport& arm) {
  return arm.findings.empty() ? std::string(name_of(arm.outcome))
                              : code_text(arm.findings.front().code);
}

std::string body_of(const RunInfo& run, const ScenarioReport& scenario, const ArmReport& arm) {
  ConsoleOptions plain;
  plain.width = 0;
  Page page(plain);
  if (!arm.headline.empty()) page.line(printable(arm.headline));
  add_explanation(page, 0, arm);
  add_rerun(page, 0, arm, rerun_text(run, scenario, arm));
  return page.take();
}

void add_text(xml_node node, const std::string& text) {
  node.append_child(pugi::node_pcdata).set_value(xml_legal(text).c_str());
}

std::string short_message(const ArmReport& arm) {
  const std::string reason = reason_text(arm);
  const bool skipped = arm.verdict == Verdict::skip;
  return shorten(skipped ? reason : counts_text(arm) + ": " + reason, kJunitMessageColumns);
}

void add_case(xml_node suite, const std::string& class_name, const std::string& name,
              const RunInfo& run, const ScenarioReport& scenario, const ArmReport& arm) {
  xml_node test = suite.append_child("testcase");
  set(test, "classname", class_name);
  set(test, "name", name);
  set_time(test, arm.duration_s);
  if (arm.verdict == Verdict::pass) {
    const std::string max = max_text(arm);
    return add_text(
        test.append_child("system-out"),
        counts_text(arm) + (max.empty() ? "" : ", " + max) + "\n" + body_of(run, scenario, arm));
  }
  xml_node problem = test.append_child(element_of(arm.verdict));
  set(problem, "message", short_message(arm));
  if (arm.verdict == Verdict::skip) return;
  set(problem, "type", type_of(arm));
  add_text(problem, body_of(run, scenario, arm));
}

// A scenario that never came to its arms still counts.
ArmReport stand_in(const ScenarioReport& scenario) {
  ArmReport arm;
  arm.name = scenario.name;
  arm.verdict = scenario.verdict;
  arm.reason = scenario.reason.empty() ? "no arm was run" : scenario.reason;
  arm.outcome = scenario.verdict == Verdict::skip ? Outcome::skipped : Outcome::error;
  arm.duration_s = scenario.duration_s;
  return arm;
}

Counts add_suite(xml_node suites, const std::string& name, const RunInfo& run,
                 const ScenarioReport& scenario) {
  const std::vector<ArmReport> substitute = {stand_in(scenario)};
  const std::vector<ArmReport>& arms = scenario.arms.empty() ? substitute : scenario.arms;
  Counts counts;
  for (const ArmReport& arm : arms) counts.add(arm.verdict);
  xml_node suite = suites.append_child("testsuite");
  set(suite, "name", name);
  set_counts(suite, counts);
  set_time(suite, scenario.duration_s);
  if (run.started_at.size() >= 19) {  // the schema knows no time zone
    set(suite, "timestamp", std::string_view(run.started_at).substr(0, 19));
  }
  if (!run.host.empty()) set(suite, "hostname", run.host);
  add_properties(suite, run, scenario);
  UniqueNames names;
  for (const ArmReport& arm : arms) add_case(suite, name, names(arm.name), run, scenario, arm);
  return counts;
}

struct StringWriter : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
};

}  // namespace

std::string junit_text(const Report& report) {
  pugi::xml_document document;
  xml_node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  xml_node suites = document.append_child("testsuites");
  set(suites, "name", "gradcheck");
  UniqueNames names;
  Counts counts;
  for (const ScenarioReport& scenario : report.scenarios) {
    counts.add(add_suite(suites, names(scenario.name), report.run, scenario));
  }
  set_counts(suites, counts);
  set_time(suites, report.run.duration_s);
  StringWriter writer;
  document.save(writer, "  ", pugi::format_default, pugi::encoding_utf8);
  return writer.text;
}

}  // namespace gradcheck
