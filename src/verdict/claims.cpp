// SPDX-License-Identifier: Apache-2.0
#include "verdict/claims.h"

#include <algorithm>
#include <utility>

namespace gradcheck {
namespace {

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) != lines.end()) return;
  lines.push_back(std::move(line));
}

}  // namespace

CauseClaim& ClaimSet::add(Cause cause, Confidence confidence, std::string_view model,
                          std::vector<std::string> evidence) {
  for (CauseClaim& known : claims_) {
    if (known.cause != cause || known.model != model) continue;
    known.confidence = std::max(known.confidence, confidence);
    for (std::string& line : evidence) add_once(known.evidence, std::move(line));
    return known;
  }
  CauseClaim& added = claims_.emplace_back();
  added.cause = cause;
  added.confidence = confidence;
  added.model = model;
  added.evidence = std::move(evidence);
  added.next = info_of(cause).next;
  return added;
}

bool ClaimSet::has(std::string_view model) const {
  return std::any_of(claims_.begin(), claims_.end(),
                     [model](const CauseClaim& claim) { return claim.model == model; });
}

std::vector<CauseClaim> ClaimSet::take() {
  std::stable_sort(claims_.begin(), claims_.end(), [](const CauseClaim& a, const CauseClaim& b) {
    return a.confidence > b.confidence;
  });
  return std::move(claims_);
}

}  // namespace gradcheck
