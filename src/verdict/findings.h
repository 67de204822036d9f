// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/finding.h"
#include "model/phrases.h"
#include "verdict/gradient.h"

namespace gradcheck {

// One tensor's part in a finding. `detail` is a clause that follows the numbers in the message;
// tensors with another detail make another finding.
struct Sighting {
  int code = 0;
  std::string_view model;
  std::string_view name;  // of the tensor; empty: the finding is about no tensor
  std::int64_t step = 0;
  std::vector<int> ranks;
  std::string detail;
};

// Gathers what was seen and writes one finding for each (code, model, detail). Severity, title and
// hint come from the table of codes; a softer severity may be asked for.
class FindingSet {
 public:
  explicit FindingSet(const Context& context) : context_(context) {}

  void add(const Sighting& sighting);
  // A finding with a message of its own.
  void say(int code, const std::string& message, const std::vector<int>& ranks = {},
           std::string_view model = {});
  // Of the finding with this detail or message.
  void soften(int code, std::string_view detail, Severity severity);

  bool has(int code) const;
  std::vector<Finding> take();  // severity (errors first), then code, then model

 private:
  using Key = std::tuple<int, std::string, std::string>;  // code, model, detail
  std::string message_of(const Key& key, const Finding& finding) const;
  std::string share_of_inventory(const Key& key, std::uint64_t count) const;

  const Context& context_;
  std::map<Key, Finding> findings_;
  std::map<Key, std::set<std::string>> seen_;  // distinct tensor names
};

// Everything the gradients show (GC1xx, GC2xx, GC6xx, GC7xx), several findings for one tensor
// included: none hides another.
void find_in_gradients(const Context& context, const std::vector<GradientResult>& results,
                       FindingSet& findings);

std::string counted(std::uint64_t count, std::string_view noun);  // "1 backward", "2 backwards"

// "2 ×", "0.5 ×": a factor as people write it.
std::string factor_text(double factor);

}  // namespace gradcheck
