// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/agreement.h"
#include "verdict/audit.h"
#include "verdict/facts.h"
#include "verdict/judge.h"
#include "verdict/plan.h"
#include "verdict/shards.h"

namespace gradcheck {

// What every part of the judge reads. Lives as long as one call of judge().
struct Context {
  const JudgeInput& input;  // what is asked; of evidence that was put in order first, look below
  const EvidenceTable& evidence;
  const PayloadViews& payloads;
  Facts facts;
  Plan plan;
  const PutTogether* shards = nullptr;  // null: the evidence holds none

  const EvidenceTable& table() const { return evidence; }
};

enum class Rung : std::uint8_t {
  present,
  shape_dtype,
  finite,
  locals_distinct,
  replicas_bitwise,
  reduction_right,
  oracle_close,
};
inline constexpr std::size_t kRungs = 7;
inline constexpr std::array<std::string_view, kRungs> kRungNames = {
    "PRESENT",          "SHAPE_DTYPE",     "FINITE",      "LOCALS_DISTINCT",
    "REPLICAS_BITWISE", "REDUCTION_RIGHT", "ORACLE_CLOSE"};

// What a wrong reduction turned out to be. `code` is the finding's; 0: not explained.
struct Diagnosis {
  int code = 0;
  double factor = 1;                 // of 204: value / declared value
  std::vector<int> ranks;            // lost, reweighted or off; whose parts of a sharded one are
  std::vector<std::int64_t> micros;  // not reduced, or counted more than once
};

// Which reduction a gradient fits whose reduction nobody declared.
enum class Fits : std::uint8_t { not_asked, mean, sum, neither };

// One gradient at the end of one step: `reduced` of its last micro-step, or `final` where it was
// reduced after that was recorded (by hand), or came without a backward.
struct GradientResult {
  TensorId tensor;
  std::int64_t step = 0;
  RowKey reduced;
  std::vector<Moment> window;   // micro-steps that are in it
  int reductions = 1;           // in the window
  bool carried_over = false;    // the window that fits crosses an optimizer step
  bool unknown_past = false;    // it may hold micro-steps that were not recorded
  std::vector<double> factors;  // seen between local and value, group order; empty: none
  std::vector<double> clips;    // unequal ones that ranks clipped by, likewise
  bool used = false;            // an optimizer took it; the others are not judged
  bool sharded = false;         // put together from the ranks' parts: nobody holds another's
  bool left_alone = false;      // frozen, or declared sharded and recorded as each rank has it
  bool unrecorded = false;      // missing on some rank although its step needed it or its model ran

  Agreement agreement;
  Spread spread;
  Audit audit;                    // of the ranks' common value; the worst where ranks differ
  std::vector<int> right_ranks;   // whose value is the declared reduction
  std::vector<int> silent_ranks;  // whose `local` of some micro-step is not recorded
  std::vector<int> origin;        // ranks whose `local` is not finite
  Diagnosis diagnosis;
  std::vector<double> weights;  // measured, group order; empty: not measured

  bool compared = false;
  bool differed = false;
  bool wrong = false;
  bool absent = false;     // on every rank
  bool zero = false;       // on every rank
  bool nonfinite = false;  // on some rank
  bool proved = false;     // locals recorded, not zero everywhere, not equal on all ranks
  bool all_locals_zero = false;
  bool exact = false;  // of one rank: the value is its window's sum bit for bit
  Fits fits = Fits::not_asked;

  std::array<RungResult, kRungs> rungs;
  std::array<std::string, kRungs> reasons;

  RungResult rung(Rung r) const { return rungs[static_cast<std::size_t>(r)]; }
  const std::string& reason(Rung r) const { return reasons[static_cast<std::size_t>(r)]; }
  void set(Rung r, RungResult value, std::string why = {}) {
    rungs[static_cast<std::size_t>(r)] = value;
    reasons[static_cast<std::size_t>(r)] = std::move(why);
  }
  GradientResult() { rungs.fill(RungResult::not_applicable); }
};

// Weight of each rank's local in each micro-step of a window: [micro][rank of the group].
using WeightTable = std::vector<std::vector<double>>;

WeightTable same_weights(std::size_t micros, const std::vector<double>& ranks);

const PlanLine& line_of(const Context& context, const GradientResult& result);
std::string_view model_of(const Context& context, const GradientResult& result);
std::string_view name_of(const Context& context, const GradientResult& result);

// Asks whether the value of `rank` is the given combination of locals. Nothing where the value or
// a local with a weight is not recorded.
std::optional<AuditQuestion> ask(const Context& context, const GradientResult& result, int rank,
                                 const WeightTable& weights, int reductions);

// The same of the part that `rank` owns of a sharded value, which takes elements to answer; nothing
// where it owns none.
std::optional<AuditQuestion> ask_of_shard(const Context& context, const GradientResult& result,
                                          int rank, const WeightTable& weights, int reductions);

// The declared weights of the whole window, times the factors that were seen.
WeightTable declared_weights(const Context& context, const GradientResult& result);

// One rank's own accumulated gradient times `weight`.
WeightTable own_weights(const Context& context, const GradientResult& result, int rank,
                        double weight);

// Each rank's local times its own weight, and the factors that were seen.
WeightTable weights_of(const GradientResult& result, std::vector<double> ranks);

bool passes(const std::optional<AuditQuestion>& question);

// Failures are worst, what does not apply is best.
int badness(RungResult result);

// Inventory tensors without a value on some rank: in a step where one was due, or everywhere.
// Whether an optimizer took them does not matter.
std::set<TensorId> unrecorded_tensors(const Context& context,
                                      const std::vector<GradientResult>& results);

// True if a record of the gradient was due in the step: in jobs a parameter may begin to need a
// gradient later (unfrozen, added), or no longer need one.
bool is_due(const Context& context, const StepFacts& step, TensorId tensor);

// From the table: null where nothing is recorded or there is no such rank.
const Entry* find_entry(const EvidenceTable& table, const RowKey& key, int rank);

}  // namespace gradcheck
