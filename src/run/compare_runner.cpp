// SPDX-License-Identifier: Apache-2.0
#include "run/compare_runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "launch/clock.h"
#include "model/errors.h"
#include "run/dump_files.h"
#include "run/dump_table.h"
#include "run/run_info.h"
#include "run/runner.h"
#include "verdict/dumps.h"
#include "verdict/judge.h"

namespace gradcheck {
namespace {

// Everything that was opened; tensors point into it.
struct Dumps {
  std::vector<Dump> ranks, locals;
  std::optional<Dump> reference;
};

std::vector<Dump> opened(const std::vector<RankFiles>& files) {
  std::vector<Dump> dumps;
  for (const RankFiles& rank : files) dumps.push_back(open_dump(rank));
  return dumps;
}

bool share_a_name(const Dump& a, const Dump& b) {
  return std::any_of(a.tensors.begin(), a.tensors.end(),
                     [&](const auto& tensor) { return b.tensors.contains(tensor.first); });
}

// Names that have nothing in common are a mistake, not 310 missing tensors.
void require_common_names(const Dump& a, const Dump& b) {
  if (a.tensors.empty() || b.tensors.empty() || share_a_name(a, b)) return;
  throw UsageError(fmt::format("{} and {} have no tensor name in common ('{}', '{}')",
                               a.files.front().arrays.path, b.files.front().arrays.path,
                               a.tensors.begin()->first, b.tensors.begin()->first));
}

// A local gradient is summed element by element into the reduced one.
void require_shapes(const Dump& local, const Dump& rank) {
  for (const auto& [name, view] : local.tensors) {
    const auto reduced = rank.tensors.find(name);
    if (reduced == rank.tensors.end() || reduced->second.shape == view.shape) continue;
    throw UsageError(fmt::format("{}: tensor '{}' is [{}], but [{}] in {}",
                                 local.files.front().arrays.path, name, fmt::join(view.shape, ", "),
                                 fmt::join(reduced->second.shape, ", "),
                                 rank.files.front().arrays.path));
  }
}

Dumps opened(const CompareOptions& options) {
  std::vector<RankFiles> ranks = find_dumps(options.ranks);
  std::vector<RankFiles> all = ranks, locals;
  if (!options.locals.empty()) locals = find_dumps(options.locals);
  all.insert(all.end(), locals.begin(), locals.end());
  if (!locals.empty() && locals.size() != ranks.size()) {
    throw UsageError(
        fmt::format("--local names {} ranks, there are {}", locals.size(), ranks.size()));
  }
  std::optional<RankFiles> reference;
  if (!options.reference.empty()) reference = find_one_dump(options.reference);
  if (reference) all.push_back(*reference);
  require_distinct(all);
  Dumps dumps{opened(ranks), opened(locals), std::nullopt};
  if (reference) dumps.reference = open_dump(*reference);
  for (const Dump& dump : dumps.ranks) require_common_names(dumps.ranks.front(), dump);
  for (std::size_t rank = 0; rank < dumps.locals.size(); ++rank) {
    require_common_names(dumps.ranks.front(), dumps.locals[rank]);
    require_shapes(dumps.locals[rank], dumps.ranks[rank]);
  }
  if (reference) require_common_names(dumps.ranks.front(), *dumps.reference);
  return dumps;
}

void list_files(const Dump& dump, const std::string& role, int rank, DumpReading& reading) {
  for (const Dump::File& file : dump.files) {
    reading.files.push_back({role, rank, file.arrays.path, file.arrays.arrays.size(), file.bytes});
  }
}

void list_files(const Dumps& dumps, ArmReport& arm) {
  for (DumpReading& reading : arm.dumps) {
    const auto list = [&](const std::vector<Dump>& all, const std::string& role) {
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        list_files(all[rank], role, static_cast<int>(rank), reading);
      }
    };
    if (reading.against == "reference") {
      list_files(*dumps.reference, "reference", 0, reading);
    } else {
      list(dumps.ranks, "rank");
      list(dumps.locals, "local");
    }
  }
}

// "f32", or "mixed".
std::string dtype_of(const Dump& dump) {
  std::set<DType> dtypes;
  for (const auto& [name, view] : dump.tensors) dtypes.insert(view.dtype);
  if (dtypes.size() > 1) return "mixed types";
  return dtypes.empty() ? "" : std::string(name_of(*dtypes.begin()));
}

ArmReport judge(const Dumps& dumps, const CompareOptions& options) {
  const DumpTable evidence = tabulate(dumps.ranks, dumps.locals);
  DumpInput input{evidence.table, evidence.payloads};
  input.has_locals = !dumps.locals.empty();
  input.reduction = options.reduction;
  input.factor = options.factor;
  input.wire_dtype = options.wire_dtype;
  if (dumps.reference) input.reference = &dumps.reference->tensors;
  input.tolerance = options.tolerance;
  input.all_tensors = options.all_tensors;
  return judge_dumps(input);
}

ScenarioReport scenario_of(const CompareOptions& options) {
  const auto start = Clock::now();
  const Dumps dumps = opened(options);
  ScenarioReport scenario;
  scenario.name = "compare";
  scenario.arms.push_back(judge(dumps, options));
  ArmReport& arm = scenario.arms.front();
  arm.dtype = dtype_of(dumps.ranks.front());
  list_files(dumps, arm);
  scenario.title = fmt::format("{} tensors", dumps.ranks.front().tensors.size());
  Expect expect;
  expect.outcome = Outcome::consistent;
  apply_expectation(arm, expect, {arm.world_size, arm.dtype, false, options.fail_on});
  scenario.verdict = arm.verdict;
  scenario.reason = arm.reason;
  scenario.duration_s = seconds_since(start);
  return scenario;
}

}  // namespace

Report run_compare(const CompareOptions& options, const Host& host, Reporter& reporter) {
  Report report;
  report.tool_version = options.tool_version;
  report.run = begin_run(host, options.tool_version, options.argv, options.argv);
  report.scenarios.push_back(scenario_of(options));
  ScenarioReport& scenario = report.scenarios.front();
  if (source_date_epoch(host)) scenario.duration_s = 0;
  scenario.arms.front().duration_s = report.run.duration_s = scenario.duration_s;
  report.run.world_size = scenario.arms.front().world_size;
  report.summary = summarise(report.scenarios);
  reporter.run_started(report.run);
  reporter.scenario_finished(scenario);
  reporter.run_finished(report);
  return report;
}

}  // namespace gradcheck
