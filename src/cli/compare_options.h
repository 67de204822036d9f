// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "run/compare_runner.h"

namespace CLI {
class App;
}

namespace gradcheck {

// Options of `gradcheck compare` as they are written.
struct CompareWords {
  std::vector<std::string> ranks, locals;
  std::string reference;
  std::string tolerance;   // exact, ulp=N, norm=X
  std::string reduction;   // mean, sum, none, factor=K
  std::string wire_dtype;  // fp32, fp16, bf16
};

inline constexpr const char* kCompareAbout =
    "Compare gradients or parameters that any job dumped: safetensors, .npz or .npy\n"
    "  gradcheck compare rank0.safetensors rank1.safetensors   one file a rank\n"
    "  gradcheck compare dumps/                                a file, or a folder, a rank\n"
    "  gradcheck compare reduced/ --local local/               is it the mean of the locals?\n"
    "  gradcheck compare new.safetensors --reference old.safetensors --tolerance ulp=4";

void add_compare(CLI::App& app, CompareWords& words);

// Errors: UsageError that says what was wanted, for options without the one they belong to too.
CompareOptions compare_options_from(const CompareWords& words);

}  // namespace gradcheck
