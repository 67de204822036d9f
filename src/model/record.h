// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/dtype.h"
#include "model/tensor_stats.h"

namespace gradcheck {

// The records of schema evidence-1 as plain structs. Writers turn them into JSON lines, the reader
// turns lines into the evidence table. Step and micro count from 0; see evidence.md for each field.

inline constexpr std::string_view kEvidenceSchema = "evidence-1";
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} * 1024;

enum class Stage : std::uint8_t { start, local, reduced, final, after, next_forward };
enum class TensorKind : std::uint8_t { param, grad, buffer };
enum class TensorState : std::uint8_t { absent, zero, finite, nonfinite, unreadable };

std::string_view name_of(Stage stage);
std::string_view name_of(TensorKind kind);
std::string_view name_of(TensorState state);
std::optional<Stage> stage_from_name(std::string_view name);
std::optional<TensorKind> kind_from_name(std::string_view name);
std::optional<TensorState> state_from_name(std::string_view name);

// `zero`, `finite` or `nonfinite` of a tensor that was measured in full; `finite` of one that was
// only digested, because nothing else is known.
TensorState state_of(const TensorStats& stats);

struct HelloRecord {
  std::string schema{kEvidenceSchema};
  std::string run;    // id given by the front; evidence of another run is refused
  std::string world;  // digest of store address, size and members
  std::string role = "trainer";
  int rank = 0;
  int restart = 0;
  int world_size = 1;
  int local_rank = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string producer;  // "native" or "python"
  std::string backend;
  std::string device;
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> versions;  // component, version
  std::vector<std::pair<std::string, std::string>> env;       // allow-listed variables only
};

// Where a shard lies: elements [offset, offset + n) of the whole tensor in row-major order, n being
// the record's own number of elements, 0 for a rank that owns none.
struct ShardPlace {
  std::uint64_t offset = 0;
  std::vector<std::int64_t> global_shape;
};

struct TensorRecord {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::start;
  TensorKind kind = TensorKind::param;
  std::string model;
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  std::string layout = "dense";     // dense | sparse | shard
  std::optional<ShardPlace> shard;  // of layout `shard`
  TensorState state = TensorState::absent;
  TensorStats stats;                  // meaningless where state is absent or unreadable
  std::optional<bool> requires_grad;  // params only
  std::string tied_to;                // name of the tensor this one shares storage with
};

struct GroupRecord {
  std::string name;
  std::vector<int> ranks;
};

// What a wrapper declares about the tensors it owns; the plan is inferred from it.
struct WrapperRecord {
  std::string model;
  std::string kind;   // "ddp", "zero2", …
  std::string group;  // a GroupRecord's name
  std::string reduce = "mean";
  double divide = 0;  // factor that the sum is divided by; 0: as `reduce` says
  std::string wire_dtype;
  std::string hook;
  std::vector<std::string> ignored;
  std::string buffers = "broadcast_before_forward";
  bool find_unused = false;
  bool static_graph = false;
  bool bucket_view = false;
  bool shards = false;  // ranks own parts of the gradients and record them as such
};

struct MarkRecord {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::start;
  std::string model;
  std::uint64_t tensors = 0;  // tensor records of this (step, micro, stage, model)
};

enum class EventType : std::uint8_t {
  phase,  // the rank enters a part of its life: rendezvous, construct, forward, backward, …
  batch,
  wrapper_forward,
  inner_forward,
  backward,
  collective,
  reducer,
  optimizer_step,
  clip,
  unscale,
  grad_cleared,
  buffers_broadcast,
  log_softmax,
  exception,
  step_done,  // the rank keeps its clones and waits for `want` or `go`
  note,       // free text for people; nothing is decided from it
};

std::string_view name_of(EventType type);
std::optional<EventType> event_from_name(std::string_view name);

// One flat struct for all event types: a field that a type does not use keeps its default and is
// not written. Which type uses which field stands in docs/evidence.md.
struct EventRecord {
  EventType type = EventType::note;
  std::int64_t step = 0;
  std::int64_t micro = 0;
  std::string model;
  std::string phase;                   // phase, exception
  std::string digest;                  // batch
  std::optional<bool> armed;           // wrapper_forward, backward, reducer
  std::optional<bool> needs_finalize;  // reducer
  std::optional<bool> grad_mode;       // wrapper_forward, log_softmax
  std::optional<bool> no_sync;         // wrapper_forward, backward
  std::string site;                    // backward, log_softmax: FILE:LINE
  std::string op;                      // collective, log_softmax
  std::string group;                   // collective
  std::string reduce;                  // collective
  std::string dtype;                   // collective; log_softmax: of its input
  std::string result_dtype;            // log_softmax
  std::optional<bool> autocast;        // log_softmax
  std::uint64_t classes = 0;           // log_softmax: entries that it sums over
  std::uint64_t bytes = 0;             // collective, buffers_broadcast
  std::string optimizer;               // optimizer_step
  // optimizer_step, grad_cleared, clip, unscale: empty means `all`. collective: the gradients whose
  // storage it changed; empty: none that is known.
  std::vector<std::string> names;
  bool skipped = false;    // optimizer_step
  double norm = 0;         // clip
  double max_norm = 0;     // clip
  double scale = 0;        // unscale
  std::string error_type;  // exception
  std::string text;        // exception, note
};

struct PayloadRecord {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::reduced;
  std::string file;                // relative to the run directory
  std::vector<std::string> names;  // keys in the file, "model/name"
  std::uint64_t bytes = 0;
  bool truncated = false;  // the budget did not cover all names
};

// Log-probs of sampled tokens that the program itself handed over, [rows, tokens] each.
struct LogProbRecord {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  std::string name;               // of this place in the program: "train"
  std::string source;             // who handed them over: "gradcheck.log_probs"
  std::string file;               // relative to the run directory; empty: not written, see `text`
  std::vector<std::string> keys;  // in the file: "mask", "new", "old", …
  std::uint64_t bytes = 0;
  std::string digest;                   // of all arrays (numeric/array_digest.h)
  bool aliased = false;                 // old is new: it has no array of its own
  std::optional<std::int64_t> updates;  // optimizer steps between old and new; unset: not known
  std::string text;                     // why nothing was written
};

struct ByeRecord {
  int status = 0;
  std::uint64_t lines = 0;  // lines sent before this one
};

}  // namespace gradcheck
