// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/evidence_table.h"
#include "model/outcome.h"
#include "model/payload_view.h"

namespace gradcheck {

// One tensor on one rank at one moment, in whatever forms the evidence has it. `view` and `sketch`
// may be null. The entry outlives the part: it points into the table or the payload views.
struct Part {
  const Entry* entry = nullptr;
  const Sketch* sketch = nullptr;
  const TensorView* view = nullptr;
  double weight = 1;
};

// Some elements of a tensor, in row-major order.
struct ElementRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// "Is `value` the sum of weight × part over `parts`, up to rounding?"
struct AuditQuestion {
  Part value;
  std::vector<Part> parts;  // one a rank and micro-step
  int ranks = 1;            // N
  int reductions = 1;       // K in the window; 0: nothing was reduced
  int micro_steps = 1;      // M in the window
  double roundoff = 0;      // u of the coarser of the dtype on the wire and the dtype stored
  double subnormal = 0;     // η of the same dtype
  std::optional<ElementRange> only;  // of the value and of every part: elementwise or not at all
};

struct Audit {
  RungResult result = RungResult::inconclusive;
  std::optional<double> bound_used;  // largest |error| / bound; right is ≤ 1
  std::string how = "none";          // elementwise | sketch | none
  std::string reason;                // why it is inconclusive
  bool bound_skipped = false;        // k·u ≥ ½: there is no bound, only weights can speak
  double visible = 1;                // share of a rank's weight that could go missing unseen
  std::uint64_t left_out = 0;        // elements not finite in the value and in some part
  std::uint64_t made = 0;            // not finite in the value, finite in every part
  std::uint64_t lost = 0;            // finite in the value, not finite in some part
};

// The bound of verdicts.md §5 (Higham, Accuracy and Stability of Numerical Algorithms, ch. 4):
// |f − Σ w g| ≤ γ Σ |w||g| + K·N·η for every element, with γ of K(N+1)+M roundings; from sketches
// the same for norms, three times as wide. Elementwise where all elements are at hand.
Audit audit(const AuditQuestion& question);

// γ_k = k·u / (1 − k·u) of the question's k = K(N+1)+M roundings; nothing where k·u ≥ ½.
std::optional<double> rounding_factor(const AuditQuestion& question);

}  // namespace gradcheck
