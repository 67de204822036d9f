// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "verdict/findings.h"
#include "verdict/gradient.h"

namespace gradcheck {

// How the agent begins a note that says that something was left unchecked.
inline constexpr std::string_view kNotChecked = "not checked: ";

// What ranks said in notes of their own, each text once. One that begins with kNotChecked forbids
// `consistent` (GC604); the others are for people. What only some ranks said names them.
void pass_notes_on(const Context& context, FindingSet& findings, std::vector<std::string>& notes);

}  // namespace gradcheck
