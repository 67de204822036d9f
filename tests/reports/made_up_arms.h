// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/report.h"

namespace gradcheck::test {

// Arms as the judge would fill them, by hand: no test of a reporter runs a program.

// The 310 parameters of Qwen3-0.6B.
inline std::vector<std::string> qwen3_names() {
  std::vector<std::string> names = {"model.embed_tokens.weight"};
  for (int layer = 0; layer < 28; ++layer) {
    for (const char* part :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "self_attn.q_norm", "self_attn.k_norm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
          "input_layernorm", "post_attention_layernorm"}) {
      names.push_back("model.layers." + std::to_string(layer) + "." + part + ".weight");
    }
  }
  names.push_back("model.norm.weight");
  return names;
}

inline TensorRow tensor_row(const std::string& name, double max_abs) {
  TensorRow row;
  row.model = "Qwen3ForCausalLM";
  row.name = name;
  row.shape = {1024, 64};
  row.dtype = "f32";
  row.differed = true;
  row.state = "finite";
  row.clusters = "{0}{1}";
  row.max_abs = max_abs;
  row.max_abs_exact = true;
  row.differing_elements = 65536;
  row.audit = "elementwise";
  row.rungs = {{"PRESENT", RungResult::pass},
               {"REPLICAS_BITWISE", RungResult::fail},
               {"REDUCTION_RIGHT", RungResult::not_applicable}};
  return row;
}

inline RankRow rank_row(int rank) { return {rank, "bye", 0, "done", "bye", "", "", ""}; }

inline ArmReport arm_of(const std::string& name) {
  ArmReport arm;
  arm.name = name;
  arm.world_size = 2;
  arm.backend = "gloo";
  arm.dtype = "fp32";
  arm.seed = 7;
  arm.duration_s = 0.4;
  arm.scope = {1, 1, 310, 2'384'199'680, {"loss normalisation"}};
  arm.totals.inventory = arm.totals.compared = 310;
  arm.models = {{"Qwen3ForCausalLM", 310, 310, 0, 0, 0}};
  arm.steps = {{0, 310, 0, 0, 0, 0.0}};
  arm.parameters = {310, 0, 0, 310, 0, {}};
  arm.finals = {310, 0, 0, 0, 0, {}};
  arm.events = {1, 1, 1, 1, 25, 2'384'199'680};
  arm.ranks = {rank_row(0), rank_row(1)};
  return arm;
}

inline ArmReport consistent_arm(const std::string& name = "redirected") {
  ArmReport arm = arm_of(name);
  arm.outcome = arm.expected = Outcome::consistent;
  arm.verdict = Verdict::pass;
  arm.headline = "equal bit for bit; is the mean of the local gradients (bound used 0.2)";
  arm.totals.max_abs = 0;
  arm.totals.max_abs_exact = true;
  arm.totals.bound_used = 0.21;
  arm.totals.smallest_visible_weight = 3e-7;
  arm.rungs = {{"PRESENT", 310, 0, 0, 0, ""},
               {"REPLICAS_BITWISE", 310, 0, 0, 0, ""},
               {"REDUCTION_RIGHT", 310, 0, 0, 0, ""},
               {"ORACLE_CLOSE", 0, 0, 0, 310, "no reference"}};
  return arm;
}

inline void add_bypass(ArmReport& arm) {
  const std::vector<std::string> names = qwen3_names();
  Finding finding{201,
                  Severity::error,
                  "310 of 310 gradients were not reduced",
                  "",
                  0,
                  {0, 1},
                  {},
                  310,
                  "Compute the loss through the wrapper's forward."};
  finding.names.assign(names.begin(), names.begin() + kFindingNames);
  arm.findings = {finding};
  arm.causes = {{Cause::bypass,
                 Confidence::certain,
                 "",
                 "trainers/kto.cpp:118",
                 {"1 backward, 0 armed wrapper forwards on every rank", "0 collectives were run"},
                 {},
                 "Call the wrapper, not its inner module, for the forward that makes the loss."}};
}

// Every rank keeps its own gradients. `rows`: tensor rows in the report, the others are truncated.
inline ArmReport unreduced_arm(const std::string& name = "unwrapped", std::size_t rows = 3) {
  ArmReport arm = arm_of(name);
  arm.outcome = arm.expected = Outcome::inconsistent;
  arm.verdict = Verdict::pass;
  arm.headline = "not reduced: 1 backward, 0 armed wrapper forwards";
  arm.totals.differed = arm.models[0].differed = arm.steps[0].differed = 310;
  arm.totals.max_abs = arm.steps[0].max_abs = 0.0594;
  arm.totals.max_abs_exact = true;
  arm.events = {1, 0, 0, 1, 0, 0};
  arm.rungs = {{"PRESENT", 310, 0, 0, 0, ""},
               {"REPLICAS_BITWISE", 0, 310, 0, 0, ""},
               {"REDUCTION_RIGHT", 0, 0, 0, 310, "replicas differ"}};
  const std::vector<std::string> names = qwen3_names();
  for (std::size_t i = 0; i < rows; ++i) {
    arm.tensors.push_back(tensor_row(names[i], 0.0594 / static_cast<double>(i + 1)));
  }
  arm.truncated = static_cast<std::int64_t>(names.size() - rows);
  arm.plan = {{"Qwen3ForCausalLM",
               names[0],
               TensorKind::grad,
               Role::shared,
               Reduction::mean,
               1,
               {0, 1},
               {},
               BufferPolicy::undeclared,
               "lm_head.weight",
               PlanSource::wrapper},
              {"Qwen3ForCausalLM",
               "rotary.inv_freq",
               TensorKind::buffer,
               Role::undeclared,
               Reduction::unknown,
               1,
               {0, 1},
               {},
               BufferPolicy::broadcast_before_forward,
               "",
               PlanSource::wrapper}};
  add_bypass(arm);
  return arm;
}

inline ArmReport failed_arm(std::size_t rows = 3) {
  ArmReport arm = unreduced_arm("redirected", rows);
  arm.expected = Outcome::consistent;
  arm.verdict = Verdict::fail;
  arm.reason = "expected consistent, was inconsistent";
  return arm;
}

// The sum where the mean is declared: ranks agree on a wrong value.
inline ArmReport wrong_arm() {
  ArmReport arm = consistent_arm("sum_hook");
  arm.outcome = Outcome::inconsistent;
  arm.verdict = Verdict::fail;
  arm.reason = "expected consistent, was inconsistent";
  arm.headline = "equal bit for bit, but 2 × the mean of the local gradients";
  arm.totals.wrong = 310;
  arm.totals.bound_used = 3.4e6;
  TensorRow row = tensor_row("model.norm.weight", 0);
  row.differed = false;
  row.wrong = true;
  row.differing_elements = 0;
  row.clusters = "{0,1}";
  row.bound_used = 3.4e6;
  row.weights = {1, 1};
  row.rungs = {{"REPLICAS_BITWISE", RungResult::pass}, {"REDUCTION_RIGHT", RungResult::fail}};
  arm.tensors = {row};
  arm.truncated = 309;
  arm.findings = {{204,
                   Severity::error,
                   "310 of 310 gradients are 2 × the declared mean",
                   "",
                   0,
                   {},
                   {"model.norm.weight"},
                   310,
                   "Divide by the world size exactly once."}};
  arm.causes = {{Cause::sum_not_mean,
                 Confidence::likely,
                 "",
                 "",
                 {"the weight of every rank is 1.000 ± 0.001, declared is 0.5"},
                 {"no communication hook was seen"},
                 "Divide by the number of ranks."}};
  return arm;
}

// A rank was killed and the other waited for it.
inline ArmReport died_arm() {
  ArmReport arm = arm_of("wrapped");
  arm.outcome = Outcome::error;
  arm.expected = Outcome::consistent;
  arm.verdict = Verdict::error;
  arm.headline = "rank 1 died in backward (SIGKILL)";
  arm.reason = "expected consistent, saw error: " + arm.headline;
  arm.totals = {};
  arm.totals.inventory = 310;
  arm.totals.unrecorded = 310;
  arm.findings = {{802,
                   Severity::error,
                   arm.headline + "; last record: mark start, 310 tensors",
                   "",
                   0,
                   {1},
                   {},
                   0,
                   "Read the named rank's last output; the signal says how it ended."}};
  arm.ranks = {{0, "deadline", 0, "backward", "event backward, step 0 micro 0", "RuntimeError",
                "[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711\n"
                "This may indicate a possible application crash",
                ""},
               {1, "signalled", 9, "backward", "mark start, 310 tensors", "", "",
                "loading\r\n\x1b[31mout of memory\x1b[0m: process 4711\nkilled\n"}};
  arm.notes = {"rank 1 left no payload"};
  return arm;
}

inline ArmReport late_arm() {
  ArmReport arm = died_arm();
  arm.name = "hangs";
  arm.headline = "rank 1 passed the deadline step (30 s) in backward";
  arm.reason = "expected consistent, saw error: " + arm.headline;
  arm.findings[0].code = 803;
  arm.findings[0].message = arm.headline + "; last record: mark start, 310 tensors";
  arm.ranks[1].end = "deadline";
  arm.ranks[1].status = 0;
  return arm;
}

// As the runner fills it when a launch fails: no rank, no finding, one sentence.
inline ArmReport not_started_arm(const std::string& name) {
  ArmReport arm;
  arm.name = name;
  arm.world_size = 2;
  arm.backend = "gloo";
  arm.dtype = "fp32";
  arm.seed = 7;
  arm.outcome = Outcome::error;
  arm.verdict = Verdict::error;
  arm.headline =
      "there is no /opt/bin/gradcheck-rank: native scenarios need gradcheck-rank; build it with "
      "LibTorch (scripts/setup), or name it in GRADCHECK_RANK";
  arm.reason = "expected consistent, saw error: " + arm.headline;
  arm.notes = {arm.headline};
  return arm;
}

// The headline, the reason and the finding all hold the exception's text.
inline ArmReport raised_arm() {
  ArmReport arm = died_arm();
  arm.name = "raises";
  arm.outcome = Outcome::raised;
  arm.headline = "rank 0 raised ValueError in forward: the labels of a batch are empty";
  arm.reason = "expected consistent, saw raised: " + arm.headline;
  arm.findings = {{801,
                   Severity::error,
                   arm.headline + "; last record: event phase forward",
                   "",
                   0,
                   {0},
                   {},
                   0,
                   "Read the exception text of the named ranks."}};
  arm.ranks = {{0, "bye", 1, "forward", "event phase forward", "ValueError",
                "the labels of a batch are empty", ""},
               rank_row(1)};
  arm.notes.clear();
  return arm;
}

inline ArmReport inconclusive_arm() {
  ArmReport arm = consistent_arm("same_data");
  arm.outcome = Outcome::inconclusive;
  arm.verdict = Verdict::error;
  arm.reason = "nothing was proved: both ranks were given the same batches";
  arm.headline = "equal bit for bit, and so were the local gradients";
  arm.totals.proved_nothing = 310;
  arm.findings = {{601,
                   Severity::error,
                   "ranks 0, 1 were given the same data in step 0",
                   "",
                   0,
                   {0, 1},
                   {},
                   0,
                   "Give every data-parallel rank its own batches."}};
  return arm;
}

inline ArmReport skipped_arm() {
  ArmReport arm = arm_of("unwrapped");
  arm.outcome = Outcome::skipped;
  arm.expected = Outcome::inconsistent;
  arm.verdict = Verdict::skip;
  arm.reason = "needs two ranks or more";
  arm.world_size = 1;
  arm.totals = {};
  arm.ranks.clear();
  return arm;
}

inline ArmReport one_rank_arm() {
  ArmReport arm = consistent_arm();
  arm.world_size = 1;
  arm.headline = "one rank: agreement not tested; every gradient is its local bit for bit";
  arm.totals.max_abs.reset();
  arm.scope.not_checked = {"agreement (one rank)"};
  arm.ranks = {rank_row(0)};
  return arm;
}

}  // namespace gradcheck::test
