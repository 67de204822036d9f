// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "verdict/logp/facts.h"

namespace gradcheck {

// The tests, cheap and certain first (docs/logp.md). Each reads the facts and the arrays and
// says what it saw; several may see something in one dump, none hides another.

std::vector<Sign> see_values(const LogProbFacts& facts);     // not finite, positive
std::vector<Sign> see_missing(const LogProbFacts& facts);    // exact zeros at real tokens
std::vector<Sign> see_precision(const LogProbFacts& facts);  // grids of the two sides
std::vector<Sign> see_places(const LogProbFacts& facts);     // lag, row order, onsets inside rows
std::vector<Sign> see_sides(const LogProbFacts& facts);      // all delta of one sign
std::vector<Sign> see_trends(const LogProbFacts& facts);     // over the log-prob
std::vector<Sign> see_profiles(const LogProbFacts& facts);   // over positions and padding
std::vector<Sign> see_tails(const LogProbFacts& facts);      // concentration
std::vector<Sign> see_repeat(const LogProbFacts& facts);     // noise of a repeated forward
std::vector<Sign> see_entropy(const LogProbFacts& facts);    // surprisal against entropy
std::vector<Sign> see_ranks(const LogProbFacts& facts);      // one bad rank in a clean mean
std::vector<Sign> see_bias(const LogProbFacts& facts);       // mean ratio is not 1

// What may be behind a number above its band that no sign explains: never more than possible.
std::vector<CauseClaim> guesses(const LogProbFacts& facts);

// All of them, in order. Where one is certain and accounts for nearly everything, the shape of the
// differences is its doing and is not read.
std::vector<Sign> see_all(const LogProbFacts& facts);

// Helpers for their texts.
std::string number_text(double value);                          // "5.9e-3", "0.031", "1.2"
std::string percent_text(double share);                         // "12 %", "0.4 %"
std::string tokens_text(std::int64_t count);                    // "1 token", "12345 tokens"
std::string of_all_text(std::int64_t count, std::int64_t all);  // "3 of 120 tokens"

CauseClaim claim_of(Cause cause, Confidence confidence, std::vector<std::string> evidence,
                    std::vector<std::string> against = {});

}  // namespace gradcheck
