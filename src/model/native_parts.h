// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace gradcheck {

// Names of the native lab's parts. The scenario decoder refuses any other; gradcheck-rank has one
// factory a name. A part may serve some others only: combinations are checked by the lab.
struct NativePart {
  std::string_view name;
  std::string_view summary;
};

std::span<const NativePart> native_models();
std::span<const NativePart> native_trainers();
std::span<const NativePart> native_losses();
std::span<const NativePart> native_wrappers();
std::span<const NativePart> native_paths();
std::span<const NativePart> native_backends();
std::span<const NativePart> native_dtypes();
std::span<const NativePart> native_data();
std::span<const NativePart> native_no_sync();
std::span<const NativePart> native_hooks();
std::span<const NativePart> fault_kinds();
std::span<const NativePart> fault_phases();

bool contains(std::span<const NativePart> parts, std::string_view name);

}  // namespace gradcheck
