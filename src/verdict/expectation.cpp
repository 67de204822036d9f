// SPDX-License-Identifier: Apache-2.0
#include "model/expectation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "verdict/judge.h"

namespace gradcheck {
namespace {

// An empty list restricts nothing.
template <class T>
bool is_listed(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

// An override demands what it states and leaves the rest as it was.
Expect resolve(const Expect& expect, const ExpectationContext& context) {
  return expected_for(expect, context.ranks, context.dtype);
}

Outcome expected_outcome(const Expect& expect) {
  return expect.outcome.value_or(expect.raises ? Outcome::raised : Outcome::consistent);
}

// Each check returns what differed, or nothing.

std::string check_count(const char* what, std::optional<std::int64_t> expected, std::int64_t seen) {
  if (!expected || *expected == seen) return {};
  return fmt::format("expected {} {}, saw {}", *expected, what, seen);
}

std::string check_codes(const ArmReport& arm, const Expect& expect) {
  for (const std::string& code : expect.codes) {
    const bool found = std::any_of(arm.findings.begin(), arm.findings.end(),
                                   [&](const Finding& f) { return code_text(f.code) == code; });
    if (!found) return fmt::format("expected finding {}, which was not made", code);
  }
  return {};
}

std::string check_causes(const ArmReport& arm, const Expect& expect) {
  for (const std::string& cause : expect.causes) {
    const bool found = std::any_of(arm.causes.begin(), arm.causes.end(),
                                   [&](const CauseClaim& c) { return name_of(c.cause) == cause; });
    if (!found) return fmt::format("expected cause {}, which was not found", cause);
  }
  return {};
}

// NaN fails every comparison, also in a band without edges.
bool inside(const Band& band, double value) {
  return (!band.min || value >= *band.min) && (!band.max || value <= *band.max) && value == value;
}

std::string check_band(const ArmReport& arm, const Expect& expect) {
  if (!expect.max_abs) return {};
  if (!arm.totals.max_abs) return "expected max_abs in a band, but it is not known";
  if (inside(*expect.max_abs, *arm.totals.max_abs)) return {};
  return fmt::format("max_abs {:.3g} is outside its band", *arm.totals.max_abs);
}

std::string check_number(const char* what, const std::optional<Band>& band, double value) {
  if (!band || inside(*band, value)) return {};
  return fmt::format("{} {:.3g} is outside its band", what, value);
}

// Of the reference model; a pair that is missing is in no band.
double distance_to_reference(const LogProbReading& reading) {
  for (const LogProbPair& pair : reading.pairs) {
    if (pair.name == "new - ref") return pair.max_abs;
  }
  return std::nan("");
}

std::string check_reading(const LogProbReading& reading, const LogProbExpectation& expect) {
  if (expect.outcome && reading.outcome != *expect.outcome) {
    return fmt::format("expected {}, saw {}", name_of(*expect.outcome), name_of(reading.outcome));
  }
  if (expect.bitwise && reading.bitwise != *expect.bitwise) {
    return fmt::format("expected them to {}be equal bit for bit", *expect.bitwise ? "" : "not ");
  }
  const auto cause = reading.causes.empty() ? "none" : name_of(reading.causes.front().cause);
  if (expect.cause.empty() || cause == expect.cause) return {};
  return fmt::format("expected {} as their first cause, saw {}", expect.cause, cause);
}

std::string check_log_prob_bands(const LogProbReading& reading, const LogProbExpectation& expect) {
  for (const std::string& mismatch :
       {check_number("max |Δ|", expect.max_abs, reading.statistics.max_abs),
        check_number("mean |Δ|", expect.mean_abs, reading.statistics.mean_abs),
        check_number("max |new − ref|", expect.reference, distance_to_reference(reading))}) {
    if (!mismatch.empty()) return mismatch;
  }
  return {};
}

// No reading shows nothing.
std::string check_log_probs(const ArmReport& arm, const Expect& expect, bool overridden) {
  if (!expect.logp) return {};
  if (arm.logp.empty()) return "expected log-probs, but none were a test";
  for (const LogProbArm& judged : arm.logp) {
    std::string mismatch = check_reading(judged.reading, *expect.logp);
    if (mismatch.empty() && !overridden) {
      mismatch = check_log_prob_bands(judged.reading, *expect.logp);
    }
    if (!mismatch.empty()) {
      return fmt::format("log-probs '{}' of step {}: {}", judged.name, judged.step, mismatch);
    }
  }
  return {};
}

// Every named rank must have raised the text; without names, every rank.
std::string check_raises(const ArmReport& arm, const Expect& expect) {
  if (!expect.raises) return {};
  for (const RankRow& row : arm.ranks) {
    const auto& ranks = expect.raises->ranks;
    if (!is_listed(ranks, row.rank)) continue;
    if (row.exception_type.empty() && row.exception_text.empty()) {
      return fmt::format("rank {} did not raise", row.rank);
    }
    if (row.exception_text.find(expect.raises->text) == std::string::npos) {
      return fmt::format("rank {} raised another text than \"{}\"", row.rank, expect.raises->text);
    }
  }
  const auto& ranks = expect.raises->ranks;
  for (const int rank : ranks) {
    const bool known = std::any_of(arm.ranks.begin(), arm.ranks.end(),
                                   [rank](const RankRow& row) { return row.rank == rank; });
    if (!known) return fmt::format("there is no rank {} to raise", rank);
  }
  return arm.ranks.empty() ? "no rank is known to have raised" : "";
}

std::string first_mismatch(const ArmReport& arm, const Expect& expect,
                           const ExpectationContext& context) {
  for (const std::string& mismatch :
       {check_count("in the inventory", expect.of, arm.totals.inventory),
        check_count("differed", expect.differed, arm.totals.differed),
        check_count("wrong", expect.wrong, arm.totals.wrong), check_raises(arm, expect),
        check_codes(arm, expect), check_causes(arm, expect),
        check_log_probs(arm, expect, context.overridden),
        context.overridden ? std::string() : check_band(arm, expect)}) {
    if (!mismatch.empty()) return mismatch;
  }
  return {};
}

// Only a judged outcome can contradict an expectation; anything else leaves it unanswered.
bool was_judged(Outcome outcome) {
  return outcome == Outcome::consistent || outcome == Outcome::inconsistent;
}

void unexpected_outcome(ArmReport& arm) {
  arm.verdict = was_judged(arm.outcome) ? Verdict::fail : Verdict::error;
  arm.reason = fmt::format("expected {}, saw {}", name_of(arm.expected), name_of(arm.outcome));
  if (!arm.headline.empty()) arm.reason += ": " + arm.headline;
}

// The runner says why in the headline: "skipped: one rank: agreement cannot be tested".
std::string why_skipped(const std::string& headline) {
  constexpr std::string_view kPrefix = "skipped: ";
  return headline.starts_with(kPrefix) ? headline.substr(kPrefix.size()) : headline;
}

bool has_warning(const ArmReport& arm) {
  return std::any_of(arm.findings.begin(), arm.findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::warning; });
}

}  // namespace

void apply_expectation(ArmReport& arm, const Expect& expect, const ExpectationContext& context) {
  const Expect wanted = resolve(expect, context);
  arm.expected = expected_outcome(wanted);
  if (arm.outcome == Outcome::skipped) {
    arm.verdict = Verdict::skip;
    if (arm.reason.empty()) arm.reason = why_skipped(arm.headline);
    return;
  }
  if (arm.outcome != arm.expected) return unexpected_outcome(arm);
  arm.reason = first_mismatch(arm, wanted, context);
  const bool warned = arm.outcome == Outcome::consistent && has_warning(arm);
  if (arm.reason.empty() && warned && context.fail_on != Severity::error) {
    arm.reason = "there are warnings and --fail-on warning was given";
  }
  arm.verdict = arm.reason.empty() ? Verdict::pass : Verdict::fail;
}

bool needs_agreement(const Expect& expect, const ExpectationContext& context) {
  if (context.ranks > 1) return false;
  const Expect wanted = resolve(expect, context);
  const bool by_log_probs = wanted.logp && wanted.logp->outcome == Outcome::inconsistent;
  return expected_outcome(wanted) == Outcome::inconsistent && !by_log_probs;
}

}  // namespace gradcheck
