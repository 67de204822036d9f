// SPDX-License-Identifier: Apache-2.0
#include "verdict/declarations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace gradcheck {
namespace {

// Names that a wrapper ignores come from a set, in any order.
auto terms_of(const WrapperRecord& wrapper) {
  return std::tuple(
      wrapper.kind, wrapper.group, wrapper.reduce, wrapper.divide, wrapper.wire_dtype, wrapper.hook,
      std::set<std::string>(wrapper.ignored.begin(), wrapper.ignored.end()), wrapper.buffers,
      wrapper.find_unused, wrapper.static_graph, wrapper.bucket_view);
}

class Declarations {
 public:
  Declarations(const Context& context, FindingSet& findings)
      : table_(context.table()), findings_(findings) {}

  void check() {
    std::set<std::string> models, groups;
    for (const int rank : every_rank(table_.world_size())) {
      for (const WrapperRecord& wrapper : table_.rank(rank).wrappers) {
        models.insert(wrapper.model);
        groups.insert(wrapper.group);
      }
    }
    for (const std::string& model : models) check_wrapper(model);
    for (const std::string& group : groups) check_group(group);
  }

 private:
  // Ranks outside the wrapper's group need not know of it.
  void check_wrapper(const std::string& model) {
    const WrapperRecord& first = *wrapper_of(table_, model);
    const auto members = ranks_of_group(table_, first.group);
    const auto odd = odd_ranks(members, [&](const RankEvidence& rank) {
      return compare(rank.wrappers, [&](const WrapperRecord& wrapper) {
        return wrapper.model != model                 ? Match::other
               : terms_of(wrapper) == terms_of(first) ? Match::same
                                                      : Match::different;
      });
    });
    if (odd.empty()) return;
    findings_.say(604, "ranks declare different wrappers for " + model, odd, model);
  }

  void check_group(const std::string& name) {
    const auto members = ranks_of_group(table_, name);
    bool described = false, broken = false;
    const auto odd = odd_ranks(members, [&](const RankEvidence& rank) {
      return compare(rank.groups, [&](const GroupRecord& group) {
        if (group.name != name) return Match::other;
        described = true;
        broken |= !is_group_of(group.ranks, table_.world_size());
        const std::set<int> ranks(group.ranks.begin(), group.ranks.end());
        return std::equal(ranks.begin(), ranks.end(), members.begin(), members.end())
                   ? Match::same
                   : Match::different;
      });
    });
    if (!described || (odd.empty() && !broken)) return;
    findings_.say(604,
                  broken ? fmt::format("group {} is not a set of this world's ranks", name)
                         : "ranks declare different groups " + name,
                  odd);
  }

  enum class Match { other, same, different };
  struct Counts {
    int same = 0, different = 0;
  };

  template <class Record, class Judge>
  static Counts compare(const std::vector<Record>& records, Judge judge) {
    Counts counts;
    for (const Record& record : records) {
      const Match match = judge(record);
      counts.same += match == Match::same;
      counts.different += match == Match::different;
    }
    return counts;
  }

  // Ranks that declare something else, and members that declare nothing.
  template <class Count>
  std::vector<int> odd_ranks(const std::vector<int>& members, Count count) const {
    std::vector<int> odd;
    for (const int rank : every_rank(table_.world_size())) {
      const Counts counts = count(table_.rank(rank));
      const bool member = std::binary_search(members.begin(), members.end(), rank);
      if (counts.different > 0 || (member && counts.same == 0)) odd.push_back(rank);
    }
    return odd;
  }

  const EvidenceTable& table_;
  FindingSet& findings_;
};

}  // namespace

void find_contradictions(const Context& context, FindingSet& findings) {
  Declarations(context, findings).check();
}

}  // namespace gradcheck
