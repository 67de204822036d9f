// SPDX-License-Identifier: Apache-2.0
#include "model/record.h"

#include <array>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 6> kStages = {"start", "local", "reduced",
                                                     "final", "after", "next_forward"};
constexpr std::array<std::string_view, 3> kKinds = {"param", "grad", "buffer"};
constexpr std::array<std::string_view, 5> kStates = {"absent", "zero", "finite", "nonfinite",
                                                     "unreadable"};
constexpr std::array<std::string_view, 16> kEvents = {
    "phase",       "batch",      "wrapper_forward", "inner_forward",
    "backward",    "collective", "reducer",         "optimizer_step",
    "clip",        "unscale",    "grad_cleared",    "buffers_broadcast",
    "log_softmax", "exception",  "step_done",       "note"};

}  // namespace

std::string_view name_of(Stage stage) { return name_at(kStages, stage); }
std::string_view name_of(TensorKind kind) { return name_at(kKinds, kind); }
std::string_view name_of(TensorState state) { return name_at(kStates, state); }
std::string_view name_of(EventType type) { return name_at(kEvents, type); }

std::optional<Stage> stage_from_name(std::string_view name) {
  return find_name<Stage>(kStages, name);
}
std::optional<TensorKind> kind_from_name(std::string_view name) {
  return find_name<TensorKind>(kKinds, name);
}
std::optional<TensorState> state_from_name(std::string_view name) {
  return find_name<TensorState>(kStates, name);
}
std::optional<EventType> event_from_name(std::string_view name) {
  return find_name<EventType>(kEvents, name);
}

TensorState state_of(const TensorStats& stats) {
  if (stats.nan + stats.inf > 0) return TensorState::nonfinite;
  if (stats.measured && stats.zeros == stats.n) return TensorState::zero;
  return TensorState::finite;
}

}  // namespace gradcheck
