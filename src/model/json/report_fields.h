// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/json/dump_fields.h"
#include "model/json/log_prob_fields.h"
#include "model/report.h"

namespace gradcheck::report_json {

// The one list of what report-1 holds: each struct's keys, in the order they are written. Writer
// and reader both walk it, so neither can forget a field.
//
// A visitor is called as v("key", field); v.code("key", field) is a finding's number, written
// GC201. A key added in a later minor version must be read as optional.

void fields(auto& v, is<RunInfo> auto& run) {
  v("id", run.id);
  v("started_at", run.started_at);
  v("duration_s", run.duration_s);
  v("host", run.host);
  v("world_size", run.world_size);
  v("backend", run.backend);
  v("seed", run.seed);
  v("versions", run.versions);
  v("argv", run.argv);
  v("env", run.env);
}

void fields(auto& v, is<Summary> auto& summary) {
  v("pass", summary.pass);
  v("fail", summary.fail);
  v("error", summary.error);
  v("skip", summary.skip);
  v("exit_code", summary.exit_code);
  v("compared", summary.compared);
  v("differed", summary.differed);
  v("wrong", summary.wrong);
}

void fields(auto& v, is<Totals> auto& totals) {
  v("inventory", totals.inventory);
  v("compared", totals.compared);
  v("differed", totals.differed);
  v("wrong", totals.wrong);
  v("unrecorded", totals.unrecorded);
  v("absent", totals.absent);
  v("zero", totals.zero);
  v("nonfinite", totals.nonfinite);
  v("proved_nothing", totals.proved_nothing);
  v("max_abs", totals.max_abs);
  v("max_abs_exact", totals.max_abs_exact);
  v("bound_used", totals.bound_used);
  v("smallest_visible_weight", totals.smallest_visible_weight);
}

void fields(auto& v, is<ModelTotals> auto& model) {
  v("model", model.model);
  v("inventory", model.inventory);
  v("compared", model.compared);
  v("differed", model.differed);
  v("wrong", model.wrong);
  v("unrecorded", model.unrecorded);
}

void fields(auto& v, is<StepTotals> auto& step) {
  v("step", step.step);
  v("compared", step.compared);
  v("differed", step.differed);
  v("wrong", step.wrong);
  v("unrecorded", step.unrecorded);
  v("max_abs", step.max_abs);
}

void fields(auto& v, is<RungTotals> auto& rung) {
  v("rung", rung.rung);
  v("pass", rung.pass);
  v("fail", rung.fail);
  v("inconclusive", rung.inconclusive);
  v("not_applicable", rung.not_applicable);
  v("reason", rung.reason);
}

void fields(auto& v, is<Finding> auto& finding) {
  v.code("code", finding.code);
  v("severity", finding.severity);
  v("message", finding.message);
  v("model", finding.model);
  v("step", finding.step);
  v("ranks", finding.ranks);
  v("names", finding.names);
  v("count", finding.count);
  v("hint", finding.hint);
}

void fields(auto& v, is<CauseClaim> auto& claim) {
  v("cause", claim.cause);
  v("confidence", claim.confidence);
  v("model", claim.model);
  v("site", claim.site);
  v("evidence", claim.evidence);
  v("against", claim.against);
  v("next", claim.next);
}

void fields(auto& v, is<TensorRow> auto& tensor) {
  v("model", tensor.model);
  v("name", tensor.name);
  v("shape", tensor.shape);
  v("dtype", tensor.dtype);
  v("step", tensor.step);
  v("differed", tensor.differed);
  v("wrong", tensor.wrong);
  v("state", tensor.state);
  v("clusters", tensor.clusters);
  v("max_abs", tensor.max_abs);
  v("max_abs_exact", tensor.max_abs_exact);
  v("differing_elements", tensor.differing_elements);
  v("sign_of_zero_only", tensor.sign_of_zero_only);
  v("nan_payload_only", tensor.nan_payload_only);
  v("bound_used", tensor.bound_used);
  v("audit", tensor.audit);
  v("weights", tensor.weights);
  v("rungs", tensor.rungs);
}

void fields(auto& v, is<SideTotals> auto& side) {
  v("compared", side.compared);
  v("differed_at_start", side.differed_at_start);
  v("differed_after", side.differed_after);
  v("moved", side.moved);
  v("unrecorded", side.unrecorded);
  v("broadcast_bytes_per_forward", side.broadcast_bytes_per_forward);
}

void fields(auto& v, is<PlanLine> auto& line) {
  v("model", line.model);
  v("name", line.name);
  v("kind", line.kind);
  v("role", line.role);
  v("reduction", line.reduction);
  v("factor", line.factor);
  v("group", line.group);
  v("wire_dtype", line.wire_dtype);
  v("buffers", line.buffers);
  v("tied_to", line.tied_to);
  v("source", line.source);
}

void fields(auto& v, is<EventTotals> auto& events) {
  v("backwards", events.backwards);
  v("armed_forwards", events.armed_forwards);
  v("unarmed_forwards", events.unarmed_forwards);
  v("optimizer_steps", events.optimizer_steps);
  v("collectives", events.collectives);
  v("collective_bytes", events.collective_bytes);
}

void fields(auto& v, is<RankRow> auto& rank) {
  v("rank", rank.rank);
  v("end", rank.end);
  v("status", rank.status);
  v("phase", rank.phase);
  v("last_record", rank.last_record);
  v("exception_type", rank.exception_type);
  v("exception_text", rank.exception_text);
  v("stderr_tail", rank.stderr_tail);
}

void fields(auto& v, is<Scope> auto& scope) {
  v("steps", scope.steps);
  v("micro_steps", scope.micro_steps);
  v("tensors", scope.tensors);
  v("bytes", scope.bytes);
  v("not_checked", scope.not_checked);
}

void fields(auto& v, is<LogProbArm> auto& judged) {
  v("step", judged.step);
  v("name", judged.name);
  v("source", judged.source);
  v("reading", judged.reading);
}

void fields(auto& v, is<ArmReport> auto& arm) {
  v("name", arm.name);
  v("outcome", arm.outcome);
  v("expected", arm.expected);
  v("verdict", arm.verdict);
  v("reason", arm.reason);
  v("headline", arm.headline);
  v("world_size", arm.world_size);
  v("backend", arm.backend);
  v("dtype", arm.dtype);
  v("seed", arm.seed);
  v.since("probe", arm.probe);
  v("duration_s", arm.duration_s);
  v("scope", arm.scope);
  v("totals", arm.totals);
  v("models", arm.models);
  v("steps", arm.steps);
  v("rungs", arm.rungs);
  v("findings", arm.findings);
  v("causes", arm.causes);
  v("tensors", arm.tensors);
  v("truncated", arm.truncated);
  v("parameters", arm.parameters);
  v("buffers", arm.buffers);
  v("finals", arm.finals);
  v("plan", arm.plan);
  v("events", arm.events);
  v("ranks", arm.ranks);
  v("notes", arm.notes);
  v.since("logp", arm.logp);
  v.since("dumps", arm.dumps);
}

void fields(auto& v, is<Source> auto& source) {
  v("repo", source.repo);
  v("pull_request", source.pull_request);
  v("file", source.file);
  v("line", source.line);
}

void fields(auto& v, is<ScenarioReport> auto& scenario) {
  v("name", scenario.name);
  v("file", scenario.file);
  v("description", scenario.description);
  v("source", scenario.source);
  v("verdict", scenario.verdict);
  v("reason", scenario.reason);
  v("title", scenario.title);
  v("control_not_run", scenario.control_not_run);
  v("duration_s", scenario.duration_s);
  v("arms", scenario.arms);
}

void fields(auto& v, is<Report> auto& report) {
  v("schema", report.schema);
  v("schema_minor", report.schema_minor);
  v("tool_version", report.tool_version);
  v("run", report.run);
  v("summary", report.summary);
  v("scenarios", report.scenarios);
}

}  // namespace gradcheck::report_json
