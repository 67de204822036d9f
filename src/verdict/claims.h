// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/finding.h"

namespace gradcheck {

// Gathers causes: one claim for each cause and model, however many findings lead to it.
class ClaimSet {
 public:
  // The reference is good until the next call.
  CauseClaim& add(Cause cause, Confidence confidence, std::string_view model,
                  std::vector<std::string> evidence);

  bool empty() const { return claims_.empty(); }
  bool has(std::string_view model) const;  // any claim about this model
  std::vector<CauseClaim> take();          // surest first, then in the order of adding

 private:
  std::vector<CauseClaim> claims_;
};

}  // namespace gradcheck
