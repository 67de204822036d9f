// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace gradcheck::native {

// What a trainer can see of the model it was given when it decides whether a loss that calls the
// inner module directly has to go through the wrapper.
struct Seen {
  bool same = true;       // `model is unwrapped`: nothing was peeled off
  bool is_zero3 = false;  // DeepSpeed, stage 3
  bool is_fsdp = false;   // either FSDP
};

Seen seen_of(std::string_view wrapper_kind);

// True: the loss is redirected through the wrapper's forward. Guards (model/native_parts.h) are
// those of huggingface/trl before and after its pull request 7247, and what a test of them must
// tell apart. Errors: std::invalid_argument.
bool redirects(std::string_view guard, const Seen& seen);

// The path that the guard's decision leads to. One process without a wrapper has one path only.
std::string path_of(std::string_view guard, std::string_view wrapper_kind);

// The decision in words, for the report.
std::string decision_text(std::string_view guard, std::string_view wrapper_kind);

}  // namespace gradcheck::native
