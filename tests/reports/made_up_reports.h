// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "made_up_arms.h"
#include "reports/registry.h"

namespace gradcheck::test {

// Whole reports, as the runner would fill them. Times, hosts and versions are fixed, so golden
// files need no masks.

inline ScenarioReport scenario_of(std::vector<ArmReport> arms,
                                  const std::string& name = "kto_liger_ddp") {
  ScenarioReport scenario;
  scenario.name = name;
  scenario.file = "scenarios/" + name + ".json";
  scenario.description = "KTO with the chunked log-prob loss under DDP.";
  scenario.source = {"huggingface/trl", 7247, "trl/trainer/kto_trainer.py", 912};
  scenario.title = "qwen3_0_6b: 310 tensors";
  scenario.verdict = arms.empty() ? Verdict::skip : arms.front().verdict;
  for (const ArmReport& arm : arms) {
    scenario.verdict = worse(scenario.verdict, arm.verdict);
    scenario.duration_s += arm.duration_s;
  }
  scenario.arms = std::move(arms);
  return scenario;
}

inline Report report_of(std::vector<ScenarioReport> scenarios) {
  Report report;
  report.tool_version = "0.1.0";
  report.run = {"2f6c9a1e",
                "2026-01-02T03:04:05Z",
                0.9,
                "buildhost",
                0,
                "",
                0,
                {{"gradcheck", "0.1.0"}, {"torch", "2.13.0"}},
                {"gradcheck", "--scenario", "kto_liger_ddp"},
                {{"OMP_NUM_THREADS", "1"}}};
  for (const ScenarioReport& scenario : scenarios) {
    Summary& summary = report.summary;
    std::int64_t* counts[] = {&summary.pass, &summary.fail, &summary.error, &summary.skip};
    ++*counts[static_cast<std::size_t>(scenario.verdict)];
  }
  if (!scenarios.empty() && !scenarios.front().arms.empty()) {
    const ArmReport& first = scenarios.front().arms.front();
    report.run.world_size = first.world_size;
    report.run.backend = first.backend;
    report.run.seed = first.seed;
  }
  report.summary.exit_code = report.summary.fail > 0 ? 1 : report.summary.error > 0 ? 3 : 0;
  report.scenarios = std::move(scenarios);
  return report;
}

inline Report passed_report() {
  return report_of({scenario_of({unreduced_arm(), consistent_arm()})});
}
inline Report failed_report(std::size_t rows = 3) {
  return report_of({scenario_of({unreduced_arm(), failed_arm(rows)})});
}
inline Report wrong_report() { return report_of({scenario_of({wrong_arm()}, "ddp_sum_hook")}); }
inline Report died_report() { return report_of({scenario_of({died_arm()}, "ddp_rank_dies")}); }
inline Report raised_report() { return report_of({scenario_of({raised_arm()}, "ddp_raises")}); }
inline Report inconclusive_report() {
  return report_of({scenario_of({inconclusive_arm()}, "ddp_same_data")});
}
inline Report one_rank_report() {
  return report_of({scenario_of({skipped_arm(), one_rank_arm()})});
}

// A scenario that was left out, one that never came to its arms, one whose control was left out.
inline Report skipped_report() {
  ScenarioReport left_out = scenario_of({}, "nccl_all_reduce");
  left_out.reason = "needs a GPU: none was found";
  ScenarioReport broken = scenario_of({}, "no_zygote");
  broken.verdict = Verdict::error;
  broken.reason = "gradcheck-rank could not be started";
  ScenarioReport alone = scenario_of({consistent_arm()});
  alone.control_not_run = true;
  return report_of({left_out, broken, alone});
}

inline Report mixed_report() {
  return report_of({scenario_of({unreduced_arm(), consistent_arm()}),
                    scenario_of({wrong_arm()}, "ddp_sum_hook"),
                    scenario_of({inconclusive_arm()}, "ddp_same_data"),
                    scenario_of({died_arm()}, "ddp_rank_dies"),
                    scenario_of({skipped_arm()}, "needs_two_ranks")});
}

// Nothing could be started: every arm is told the same.
inline Report not_started_report() {
  return report_of({scenario_of({not_started_arm("unwrapped"), not_started_arm("redirected")})});
}

// Of three ranks one said everything, one nothing and one has no row.
inline Report half_known_report() {
  ArmReport arm = died_arm();
  arm.world_size = 3;
  arm.ranks = {rank_row(0), RankRow{}};
  arm.ranks[1].rank = 1;
  return report_of({scenario_of({arm}, "half_known")});
}

// Two models, several steps, differing facets, warnings and notes on arms that pass.
inline Report remarks_report() {
  ArmReport actor = consistent_arm("fp32");
  actor.models = {{"actor", 300, 300, 0, 0, 0}, {"critic", 10, 10, 0, 0, 0}};
  actor.steps = {{0, 310, 0, 0, 0, 0.0}, {1, 300, 0, 0, 10, {}}};
  actor.totals.unrecorded = 10;
  actor.totals.compared = 300;
  actor.findings = {{210,
                     Severity::warning,
                     "gradients of step 0 entered step 1",
                     "critic",
                     1,
                     {0},
                     {"value_head.weight"},
                     10,
                     "Clear the gradients between steps."}};
  actor.notes = {"rank 1 hung at exit", "16 of 310 proved nothing", "a third note"};
  ArmReport half = unreduced_arm("bf16_log_softmax");
  half.dtype = "bf16";
  half.totals.max_abs_exact = false;
  half.models = actor.models;
  half.tensors[1].model = "critic";
  half.tensors[1].max_abs = std::numeric_limits<double>::quiet_NaN();
  half.tensors[2].max_abs_exact = false;
  half.tensors[2].sign_of_zero_only = true;
  return report_of({scenario_of({actor, half}, "ppo_actor_critic[ranks=2,dtype=bf16]")});
}

inline Report weird_report() {
  const std::string ugly = "a/b <c> & \"d\" 'e' `f` | g\nh \x1b[31mred\x1b[0m \xff ü 梯度 \x01";
  ArmReport arm = failed_arm();
  arm.name = ugly;
  arm.headline = arm.reason = arm.backend = arm.dtype = ugly;
  arm.tensors[0].name = arm.tensors[0].model = arm.tensors[0].clusters = ugly;
  arm.findings[0].message = arm.findings[0].names[0] = arm.findings[0].hint = ugly;
  arm.causes[0].site = arm.causes[0].next = arm.causes[0].evidence[0] = ugly;
  arm.ranks[1] = {1, "exited", 1, ugly, ugly, ugly, ugly, ugly};
  arm.notes = {ugly, "right-to-left \xe2\x80\xae gnp.exe"};
  ArmReport twin = arm;
  ArmReport unnamed = consistent_arm("");
  ScenarioReport scenario = scenario_of({arm, twin, unnamed}, ugly);
  scenario.title = scenario.reason = ugly;
  ScenarioReport nameless = scenario_of({}, "");
  Report report = report_of({scenario, scenario, nameless});
  report.run.host = ugly;
  report.run.versions = {{ugly, ugly}};
  return report;
}

// Doubles that are not numbers, everything optional unset, fewer rank rows than ranks.
inline Report not_finite_report() {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ArmReport arm = failed_arm();
  arm.totals.max_abs = kNaN;
  arm.totals.bound_used = kInfinity;
  arm.totals.smallest_visible_weight = -kInfinity;
  arm.duration_s = kNaN;
  arm.steps[0].max_abs = kNaN;
  arm.tensors[0].max_abs.reset();
  arm.tensors[1].max_abs = kInfinity;
  arm.tensors[2].bound_used = kNaN;
  arm.tensors[2].weights = {kNaN, 0.5};
  arm.buffers.compared = 1;
  arm.buffers.broadcast_bytes_per_forward = kInfinity;
  arm.plan[0].factor = kNaN;
  arm.plan[0].reduction = Reduction::factor;
  arm.ranks.clear();
  ArmReport unknown = unreduced_arm();
  unknown.totals.max_abs.reset();
  unknown.tensors.clear();
  ScenarioReport scenario = scenario_of({arm, unknown});
  scenario.duration_s = kInfinity;
  Report report = report_of({scenario});
  report.run.duration_s = kNaN;
  return report;
}

// One arm of `tensors` rows, all different.
inline Report large_report(std::size_t tensors) {
  ArmReport arm = failed_arm();
  arm.tensors.clear();
  for (std::size_t i = 0; i < tensors; ++i) {
    arm.tensors.push_back(tensor_row("experts." + std::to_string(i) + ".weight", 1e-3));
  }
  arm.truncated = 0;
  arm.totals.inventory = arm.totals.compared = arm.totals.differed =
      static_cast<std::int64_t>(tensors);
  return report_of({scenario_of({arm}, "large")});
}

// A scenario of `arms` failing arms.
inline Report crowded_report(std::size_t arms) {
  std::vector<ArmReport> all;
  for (std::size_t i = 0; i < arms; ++i) {
    all.push_back(failed_arm());
    all.back().name = "arm" + std::to_string(i);
  }
  return report_of({scenario_of(std::move(all), "crowded")});
}

// What the reporter `format` makes of it, told as the runner tells it.
inline std::string rendered(std::string_view format, const Report& report,
                            const ConsoleOptions& options = {}) {
  std::string text;
  const auto reporter = find_reporter(format)->make(Sink::to_string(text), options);
  reporter->run_started(report.run);
  for (const ScenarioReport& scenario : report.scenarios) reporter->scenario_finished(scenario);
  reporter->run_finished(report);
  return text;
}

}  // namespace gradcheck::test
