// SPDX-License-Identifier: Apache-2.0
#include "model/plan.h"

#include <array>

#include "model/names.h"

namespace gradcheck {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"shared", "sharded", "frozen", "rank_local",
                                                    "undeclared"};
constexpr std::array<std::string_view, 6> kReductions = {"mean", "sum",   "factor",
                                                         "none", "lossy", "unknown"};
constexpr std::array<std::string_view, 4> kBufferPolicies = {
    "must_equal", "broadcast_before_forward", "rank_local", "undeclared"};
constexpr std::array<std::string_view, 6> kSources = {"declared",   "placement", "wrapper",
                                                      "collective", "siblings",  "none"};

}  // namespace

std::string_view name_of(Role role) { return name_at(kRoles, role); }
std::string_view name_of(Reduction reduction) { return name_at(kReductions, reduction); }
std::string_view name_of(BufferPolicy policy) { return name_at(kBufferPolicies, policy); }
std::string_view name_of(PlanSource source) { return name_at(kSources, source); }

std::optional<Role> role_from_name(std::string_view name) { return find_name<Role>(kRoles, name); }
std::optional<Reduction> reduction_from_name(std::string_view name) {
  return find_name<Reduction>(kReductions, name);
}
std::optional<BufferPolicy> buffer_policy_from_name(std::string_view name) {
  return find_name<BufferPolicy>(kBufferPolicies, name);
}
std::optional<PlanSource> plan_source_from_name(std::string_view name) {
  return find_name<PlanSource>(kSources, name);
}

}  // namespace gradcheck
