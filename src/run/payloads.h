// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "evidence/read/safetensors.h"
#include "model/evidence_table.h"
#include "model/log_prob_set.h"
#include "model/payload_view.h"

namespace gradcheck {

// The elements that ranks sent on request, mapped from their files, and the log-probs that their
// program handed over. Views point into the files.
struct Payloads {
  std::vector<SafetensorsFile> files;
  PayloadViews views;
  std::vector<LogProbSet> log_probs;
};

// Opens what the table's payload and log-prob records name, below `directory`. Files lie inside it
// and hold the very tensors that were recorded (dtype, shape and digest): what does not is refused
// in the table.
Payloads open_payloads(const std::string& directory, EvidenceTable& table);

// True for a relative path without "..": what a payload record may name.
bool stays_inside(const std::filesystem::path& file);

}  // namespace gradcheck
