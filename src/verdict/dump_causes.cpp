// SPDX-License-Identifier: Apache-2.0
#include "verdict/dump_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/phrases.h"
#include "verdict/causes.h"
#include "verdict/claims.h"
#include "verdict/findings.h"

namespace gradcheck {
namespace {

using enum Confidence;

constexpr const char* kGiveLocals =
    "Dump the local gradients too and give them with --local: then the reduction is audited.";

bool has(std::span<const Finding> findings, int code) {
  return std::any_of(findings.begin(), findings.end(),
                     [code](const Finding& finding) { return finding.code == code; });
}

// Who stands with whom in the tensors that differ; nothing where they differ in different ways or
// a rank lacks some of them.
const Agreement* common_pattern(const std::vector<GradientResult>& results) {
  const Agreement* pattern = nullptr;
  for (const GradientResult& result : results) {
    if (!result.differed) continue;
    const Agreement& agreement = result.agreement;
    if (!agreement.absent.empty() || !agreement.shapes_equal) return nullptr;
    if (pattern != nullptr && pattern->clusters != agreement.clusters) return nullptr;
    pattern = &agreement;
  }
  return pattern;
}

std::uint64_t differing(const std::vector<GradientResult>& results) {
  return static_cast<std::uint64_t>(
      std::count_if(results.begin(), results.end(),
                    [](const GradientResult& result) { return result.differed; }));
}

bool all_of_size(const Agreement& agreement, std::size_t size) {
  return std::all_of(agreement.clusters.begin(), agreement.clusters.end(),
                     [size](const std::vector<int>& cluster) { return cluster.size() == size; });
}

// {0}{1}{2}: nobody shares anything; {0,1}{2,3}: groups do; {0,1,2}{3}: one rank stands apart.
void claim_from_clusters(const std::vector<GradientResult>& results, ClaimSet& claims) {
  const Agreement* pattern = common_pattern(results);
  if (pattern == nullptr) return;
  const std::uint64_t count = differing(results);
  const std::string seen = fmt::format("{} of {} differ as {}", count,
                                       counted(results.size(), "tensor"), cluster_text(*pattern));
  const auto off = minority(*pattern);
  const std::size_t first = pattern->clusters.front().size();
  if (all_of_size(*pattern, 1)) {
    if (count != results.size()) return;
    claims.add(Cause::bypass, possible, "", {seen, "no two ranks hold the same"}).next =
        kGiveLocals;
  } else if (all_of_size(*pattern, first)) {
    claims.add(Cause::sub_group, likely, "", {seen});
  } else if (off.size() == 1) {
    claims.add(Cause::corrupted_rank, possible, "",
               {seen, ranks_text(off) + " stands apart, all others agree"});
  }
}

// Digests prove it; which of the ways past the reduction it took, or whether the dump came before
// it, they cannot tell.
void claim_unreduced(std::span<const Finding> findings, ClaimSet& claims) {
  if (!has(findings, 201)) return;
  CauseClaim& claim =
      claims.add(Cause::bypass, likely, "",
                 {"every rank's value is its own local gradient, or its share of it"});
  claim.against = {"a dump written before the reduction would look the same"};
}

}  // namespace

std::vector<CauseClaim> causes_of_dumps(const Context& context,
                                        const std::vector<GradientResult>& results,
                                        std::span<const Finding> findings, bool has_locals) {
  ClaimSet claims;
  claim_unreduced(findings, claims);
  if (!has_locals) claim_from_clusters(results, claims);
  // What remains needs events that files do not hold.
  std::vector<Finding> others(findings.begin(), findings.end());
  std::erase_if(others,
                [](const Finding& f) { return f.code == 105 || (f.code >= 201 && f.code <= 203); });
  std::vector<CauseClaim> all = claims.take();
  for (CauseClaim& claim : name_causes(context, results, others)) {
    if (claim.cause == Cause::unexplained && !all.empty()) continue;
    if (claim.cause == Cause::unexplained && !has_locals) claim.next = kGiveLocals;
    all.push_back(std::move(claim));
  }
  return all;
}

}  // namespace gradcheck
