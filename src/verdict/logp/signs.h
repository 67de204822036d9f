// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/logp/facts.h"

namespace gradcheck {

// The tests, cheap and certain first (facts/logp.md §8). Each reads the facts and the arrays and
// says what it saw; several may see something in one dump, none hides another.

std::vector<Sign> see_values(const LogProbFacts& facts);     // not finite, positive
std::vector<Sign> see_missing(const LogProbFacts& facts);    // exact zeros at real tokens
std::vector<Sign> see_precision(const LogProbFacts& facts);  // grids of the two sides

// All of them, in order.
std::vector<Sign> see_all(const LogProbFacts& facts);

// Helpers for their texts.
std::string number_text(double value);                          // "5.9e-3", "0.031", "1.2"
std::string percent_text(double share);                         // "12 %", "0.4 %"
std::string tokens_text(std::int64_t count);                    // "1 token", "12345 tokens"
std::string of_all_text(std::int64_t count, std::int64_t all);  // "3 of 120 tokens"

CauseClaim claim_of(Cause cause, Confidence confidence, std::vector<std::string> evidence,
                    std::vector<std::string> against = {});

}  // namespace gradcheck
