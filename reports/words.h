// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.h"

namespace gradcheck {

// The phrases that console, JUnit and Markdown share, so that one arm reads alike everywhere. Names
// inside them are printable. None claims an agreement that was not tested: an arm with one rank
// has no "differed", one that compared nothing has no counts.

std::string name_or_unnamed(std::string_view name);

// "310/310 differed", "0/310 differed, 310 wrong", "310 tensors, agreement not tested",
// "nothing compared, 3 unrecorded", "skipped".
std::string counts_text(const ArmReport& arm);

// "5.9e-02", "~5.9e-02" where estimated, "?" where unknown, "" where there is none to show.
std::string max_number(const ArmReport& arm);
std::string max_text(const ArmReport& arm);  // "max 5.9e-02"

bool is_problem(Verdict verdict);  // fail or error

// Why an arm's program left nothing to judge: "raised", "died", "deadline"; "" where it did not.
std::string_view stop_text(const ArmReport& arm);
std::string ending_text(const ArmReport& arm);  // "as expected", "could not judge: died", …
std::string reason_text(const ArmReport& arm);  // never empty unless the arm passed

// What this arm ran on, each part empty where not known: "2 ranks", "gloo", "fp32", "seed 7".
std::vector<std::string> facets_of(const ArmReport& arm);

// Differing and wrong tensors, largest max_abs first and unknown last; "model/name" where the arm
// has several models.
std::vector<const TensorRow*> worst_rows(const ArmReport& arm);
std::string tensor_text(const ArmReport& arm, const TensorRow& row);

// `names` as "a, b, … (+n)" with as many as fit `columns`, at least one; `total` ≥ names.size().
std::string names_text(const std::vector<std::string>& names, std::size_t total,
                       std::size_t columns);

std::string finding_text(const Finding& finding);           // "error: message"
std::string cause_text(const CauseClaim& claim);            // "bypass (certain): the loss was …"
std::vector<std::string> next_steps(const ArmReport& arm);  // of causes, else hints of findings

bool ended_well(const RankRow& rank);
std::string rank_end_text(const RankRow& rank);  // "killed by SIGKILL in backward; …"

// "rank 1": those of the world that have no row; "" where all have one or none has.
std::string ranks_without_row(const ArmReport& arm);

// The command that shows this arm again with every detail; empty where no scenario file is behind
// it (exec, judge, compare).
std::string rerun_text(const RunInfo& run, const ScenarioReport& scenario, const ArmReport& arm);

// "3 scenarios, 7 arms: 2 pass, 1 fail"
std::string summary_text(const Report& report);

}  // namespace gradcheck
