// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"

namespace gradcheck {

inline constexpr int kMaxRanks = 1024;

// A scenario file, schema scenario-1, decoded with every default filled in (design.md §4).

// Something done to the program on purpose. Kinds and phases: model/native_parts.h.
struct Fault {
  std::string kind;
  int rank = -1;      // −1: every rank
  std::string phase;  // where it strikes; empty for kinds that strike in one place only
  std::int64_t step = 0;
  std::string tensor;  // skip_hook, skip_mark: which tensor or stage
  friend bool operator==(const Fault&, const Fault&) = default;
};

struct WrapperOptions {
  bool broadcast_buffers = true;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  std::string no_sync = "none";      // none | all_but_last | all: micro-steps run under no_sync
  std::string hook = "none";         // communication hook
  bool optimize_ddp = true;          // the compiler splits graphs that run inside the wrapper
  std::vector<std::string> ignored;  // names of parameters and buffers that it leaves alone
  friend bool operator==(const WrapperOptions&, const WrapperOptions&) = default;
};

struct WrapperSpec {
  std::string kind = "none";  // none | ddp | zero2 | zero3 | fsdp1 | fsdp2
  WrapperOptions options;
  friend bool operator==(const WrapperSpec&, const WrapperSpec&) = default;
};

// A term of a trainer's loss.
struct Objective {
  std::string name;
  double weight = 1;
  friend bool operator==(const Objective&, const Objective&) = default;
};

// A second network, trained beside the first.
struct Critic {
  std::string model;
  std::string path;  // its own way through its wrapper
  friend bool operator==(const Critic&, const Critic&) = default;
};

// What log-probs make of a model's logits; its reference model does the same.
struct LogitOptions {
  double temperature = 1;  // logits are divided by it, last
  double softcap = 0;      // softcap · tanh(logits / softcap); 0: none
  double scale = 1;        // multiplies the matrix product, first
  friend bool operator==(const LogitOptions&, const LogitOptions&) = default;
};

// What a policy-gradient program does between sampling and its update: completions are sampled from
// the policy, the log-probs of then (old) and of the update's forward (new) are recorded.
struct RollOut {
  std::string autocast = "none";       // none | bf16 | fp16: of the policy, then and in the update
  std::string log_softmax = "inside";  // inside | outside the update's region of autocast
  bool eval = false;                   // samples and scores in evaluation mode
  double dropout = 0;                  // of the policy in training mode; below 1
  double temperature = 1;              // that logits are divided by
  std::string mistake = "none";        // made on purpose (model/native_parts.h)
  bool debug_log_ratio = false;        // minimind's line about new against old, on rank 0
  friend bool operator==(const RollOut&, const RollOut&) = default;
};

// A program of the native lab. Names are those of model/native_parts.h.
struct NativeProgram {
  std::string model;
  std::string trainer;
  std::string loss;                   // how log-probs and their gradients are computed
  std::vector<Objective> objectives;  // empty: the trainer's default
  WrapperSpec wrapper;
  std::string path = "direct";  // empty: the guard chooses it
  std::string guard;            // empty: path says the way
  std::string backend = "gloo";
  std::string dtype = "fp32";         // fp32 | bf16
  std::string data = "per_rank";      // per_rank | same
  double loss_scale = 1;              // multiplies the loss; 0 makes every gradient zero
  std::int64_t batch_size = 4;        // sequences a rank and micro-step, at least 2
  std::int64_t hidden_size = 0;       // overrides the model's width; 0: as the model says
  std::int64_t vocab_size = 0;        // overrides the model's; 0: as the model says
  std::string labels = "mixed";       // mixed | one_sided | all_masked
  std::string rewards = "distinct";   // distinct | equal | equal_on_rank_0
  std::string reference = "noisy";    // noisy | equal: against the policy's first weights
  std::string idle_expert = "never";  // never | on_rank_1 | always: ranks that leave expert 0 idle
  std::int64_t idle_experts = 1;      // how many that are, expert 0 first
  bool touch_idle_expert = true;      // adds an idle expert as 0 · Σ parameters
  double balance_share = 0.01;        // of the experts' balancing term in the loss
  LogitOptions logits;
  std::int64_t remainder = 0;  // micro-steps of the last step; 0: as many as of the others
  std::optional<Critic> critic;
  std::optional<RollOut> roll_out;  // unset: completions are made up, no log-prob is recorded
  std::int64_t epochs = 1;          // steps on the same data
  bool count_items = false;         // divide by the tokens of all ranks, not of this one
  double clip_norm = 0;             // of the reduced gradients; 0: none
  double kl_limit = 0;              // mean KL beyond which a step counts nothing; 0: none
  double grad_scale = 0;            // of a gradient scaler; 0: none
  double label_smoothing = 0;       // at least 0, below 0.5
  double desirable_weight = 1;
  double undesirable_weight = 1;
  std::optional<Fault> fault;
  friend bool operator==(const NativeProgram&, const NativeProgram&) = default;
};

// A user's command, run in the folder of its scenario file.
struct CommandProgram {
  std::vector<std::string> argv;
  std::vector<std::string> requirements;  // Python packages that its interpreter must have
  bool starts_its_ranks = false;          // mp.spawn, torchrun; otherwise a copy is started a rank
  std::string environment;  // of scripts/environments; empty: the interpreter given or found
};

// Exactly one is set.
struct Program {
  std::optional<NativeProgram> native;
  std::optional<CommandProgram> command;
};

struct Band {
  std::optional<double> min;
  std::optional<double> max;
};

struct RaisesExpectation {
  std::string text;        // must occur in the exception's text; empty: any
  std::vector<int> ranks;  // empty: every rank
};

// What every reading of log-probs of the arm must show; there must be one. Bands are shown, not
// demanded, where options override the program.
struct LogProbExpectation {
  std::optional<Outcome> outcome;
  std::optional<bool> bitwise;
  std::string cause;              // the likeliest one; empty: any or none
  std::optional<Band> max_abs;    // of new − old
  std::optional<Band> mean_abs;   // mean |new − old|
  std::optional<Band> reference;  // max |new − reference|
};

// Restricts an expectation to runs whose ranks or dtype match; an empty list matches all.
struct Condition {
  std::vector<int> ranks;
  std::vector<std::string> dtypes;
};

struct ExpectOverride;

// What an arm must show. Unset fields demand nothing.
struct Expect {
  std::optional<Outcome> outcome;
  std::optional<std::int64_t> differed;
  std::optional<std::int64_t> of;  // size of the inventory
  std::optional<std::int64_t> wrong;
  std::vector<std::string> codes;   // each must be among the findings
  std::vector<std::string> causes;  // each must be among the causes
  std::optional<RaisesExpectation> raises;
  std::optional<Band> max_abs;
  // Whether rank 0 ends with the weights of its arm's reference, bit for bit.
  std::optional<bool> as_reference;
  std::optional<LogProbExpectation> logp;
  std::vector<ExpectOverride> when;  // laid over it in order: model/expectation.h
};

struct ExpectOverride {
  Condition condition;
  Expect expect;  // `when` is empty here
};

struct Arm {
  std::string name;
  Program program;           // the scenario's program with `change` merged in
  std::string reference;     // name of the arm it is compared with; empty: none
  std::optional<int> ranks;  // of this arm, whatever the others have
  Expect expect;
};

struct Source {
  std::string repo;
  std::int64_t pull_request = 0;
  std::string file;
  std::int64_t line = 0;
};

struct Scenario {
  std::string name;  // with matrix values: kto_liger_ddp[ranks=4,dtype=bf16]
  std::string file;  // path as given
  std::string description;
  Source source;
  int ranks = 2;
  std::int64_t steps = 1;
  std::int64_t micro_steps = 1;
  std::uint64_t seed = 0;
  std::vector<PlanRule> plan;
  std::vector<Arm> arms;
  std::vector<std::string> needs;  // gpu, nccl
  double timeout_s = 120;
  std::vector<std::string> tags;
};

// Options on the command line; they override every arm. Bands are then shown, not demanded.
struct Overrides {
  std::optional<int> ranks;
  std::optional<std::string> backend;
  std::optional<std::string> dtype;
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> steps;
  std::optional<double> timeout_s;
  bool any() const { return ranks || backend || dtype || seed || steps; }
};

}  // namespace gradcheck
