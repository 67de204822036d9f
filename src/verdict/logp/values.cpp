// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

// −inf on the new side and nothing else: the trainer's own filter threw out what was sampled.
bool is_filtered_out(const LogProbFacts& facts) {
  std::int64_t infinite = 0;
  for (const LogProbShard* shard : facts.shards) {
    for (std::size_t i = 0; i < shard->new_values.size(); ++i) {
      const bool minus = shard->new_values[i] == -std::numeric_limits<double>::infinity();
      infinite += counts(*shard, i) && minus ? 1 : 0;
    }
  }
  return infinite > 0 && infinite == facts.counts.nonfinite_new && facts.counts.nonfinite_old == 0;
}

Sign not_finite(const LogProbFacts& facts) {
  const LogProbCounts& c = facts.counts;
  Sign sign;
  sign.code = 503;
  sign.count = static_cast<std::uint64_t>(c.nonfinite_old + c.nonfinite_new);
  sign.signature = {"nonfinite", Confidence::certain, false,
                    fmt::format("{} old and {} new log-probs of {} are not finite", c.nonfinite_old,
                                c.nonfinite_new, tokens_text(c.tokens))};
  sign.explains = 1;
  if (is_filtered_out(facts)) {
    sign.claim = claim_of(Cause::renormalised_sampling, Confidence::likely,
                          {fmt::format("new is −inf at {}: the trainer's own filter dropped what "
                                       "the engine sampled",
                                       tokens_text(c.nonfinite_new))});
  } else {
    sign.claim = claim_of(Cause::nonfinite_logits, Confidence::certain, {sign.signature.text});
  }
  return sign;
}

Sign positive(const LogProbFacts& facts) {
  const LogProbCounts& c = facts.counts;
  Sign sign;
  sign.code = 503;
  sign.count = static_cast<std::uint64_t>(c.positive_old + c.positive_new);
  sign.signature = {"positive", Confidence::certain, false,
                    fmt::format("{} old and {} new log-probs of {} are above 0", c.positive_old,
                                c.positive_new, tokens_text(c.tokens))};
  sign.claim = claim_of(Cause::low_precision_logsumexp, Confidence::possible,
                        {"log-probs above 0: target and logsumexp come from different passes or "
                         "precisions"});
  return sign;
}

}  // namespace

std::vector<Sign> see_values(const LogProbFacts& facts) {
  std::vector<Sign> signs;
  const LogProbCounts& c = facts.counts;
  if (c.nonfinite_old + c.nonfinite_new > 0) signs.push_back(not_finite(facts));
  if (c.positive_old + c.positive_new > 0) signs.push_back(positive(facts));
  return signs;
}

}  // namespace gradcheck
