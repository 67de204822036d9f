// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gradcheck {

// What a fault of a kind must name, or it could never strike. A stage is named by `tensor`.
enum class FaultNeeds : std::uint8_t { nothing, phase, tensor, stage };

// Names of the native lab's parts. The scenario decoder refuses any other; gradcheck-rank has one
// factory a name.
struct NativePart {
  std::string_view name;
  std::string_view summary;
  FaultNeeds needs = FaultNeeds::nothing;  // fault kinds only
  // Objectives, models and mistakes: the trainer that they are for alone. Trainers: the one whose
  // objectives they compute.
  std::string_view trainer = {};
};

std::span<const NativePart> native_models();
std::span<const NativePart> native_trainers();
std::span<const NativePart> native_losses();
std::span<const NativePart> native_objectives();
std::span<const NativePart> native_wrappers();
std::span<const NativePart> native_paths();
std::span<const NativePart> native_guards();
std::span<const NativePart> native_backends();
std::span<const NativePart> native_dtypes();
std::span<const NativePart> native_data();
std::span<const NativePart> native_labels();
std::span<const NativePart> native_rewards();
std::span<const NativePart> native_references();
std::span<const NativePart> native_autocast();
std::span<const NativePart> native_log_softmax();
std::span<const NativePart> native_mistakes();
std::span<const NativePart> native_idle_expert();
std::span<const NativePart> native_no_sync();
std::span<const NativePart> native_hooks();
std::span<const NativePart> fault_kinds();
std::span<const NativePart> fault_phases();

bool contains(std::span<const NativePart> parts, std::string_view name);

// `nothing` for a kind that does not exist.
FaultNeeds needs_of_fault(std::string_view kind);

// True if its ranks own parts of the gradients.
bool is_sharding(std::string_view wrapper);

// The path of a program that names none: the one that suits its wrapper and loss.
std::string_view default_path(std::string_view wrapper, std::string_view loss);

// The `trainer` of the part with this name; empty where it has none or does not exist.
std::string_view trainer_of(std::span<const NativePart> parts, std::string_view name);

}  // namespace gradcheck
