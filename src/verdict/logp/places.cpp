// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verdict/logp/alignment.h"
#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

double share_of(double part, const LogProbFacts& facts) {
  return facts.sums.all.absolute > 0 ? std::min(1.0, part / facts.sums.all.absolute) : 0;
}

Sign shift_sign(const LogProbFacts& facts, const LagFit& fit) {
  Sign sign;
  sign.code = 504;
  sign.count = static_cast<std::uint64_t>(fit.tokens);
  sign.explains = 1 - fit.mean_abs / facts.statistics.mean_abs;
  sign.signature = {
      "shift", Confidence::certain, false,
      fmt::format("new fits old {} token{} {}: mean |Δ| falls from {} to {}", std::abs(fit.lag),
                  std::abs(fit.lag) == 1 ? "" : "s", fit.lag > 0 ? "later" : "earlier",
                  number_text(facts.statistics.mean_abs), number_text(fit.mean_abs))};
  sign.claim = claim_of(Cause::shift, Confidence::certain,
                        {sign.signature.text, fmt::format("the mean Δ of {} hides it",
                                                          number_text(facts.statistics.mean))});
  return sign;
}

Sign order_sign(const LogProbFacts& facts, const RowOrder& order) {
  Sign sign;
  sign.code = 504;
  sign.ranks = order.ranks;
  sign.count = static_cast<std::uint64_t>(order.tokens);
  sign.explains = share_of(order.absolute - order.residual, facts);
  sign.signature = {
      "row_order", Confidence::certain, false,
      fmt::format("{} row{} fit{} another row's old values: mean |Δ| there falls from {} to {}",
                  order.rows, order.rows == 1 ? "" : "s", order.rows == 1 ? "s" : "",
                  number_text(order.absolute / static_cast<double>(order.tokens)),
                  number_text(order.residual / static_cast<double>(order.tokens)))};
  sign.claim = claim_of(Cause::row_order, Confidence::certain,
                        {sign.signature.text, fmt::format("new of row {} fits old of row {}",
                                                          order.first_row, order.first_match)});
  return sign;
}

Sign onset_sign(const LogProbFacts& facts, const Onsets& found) {
  Sign sign;
  if (level_of(facts, found.tails) == BandLevel::fail) sign.code = 504;
  sign.explains = share_of(found.tails.absolute, facts);
  sign.signature = {
      "onset", Confidence::likely, false,
      fmt::format("{} of {} rows are equal up to some position and differ from there to their end "
                  "(row {} from position {})",
                  found.rows, facts.counts.sequences, found.first_row, found.first_position)};
  sign.claim = claim_of(
      Cause::retokenised, Confidence::likely,
      {sign.signature.text, fmt::format("they hold {} of all |Δ|", percent_text(sign.explains))});
  return sign;
}

}  // namespace

std::vector<Sign> see_places(const LogProbFacts& facts) {
  std::vector<Sign> signs;
  if (facts.counts.compared == 0) return signs;
  if (const auto lag = better_lag(facts)) signs.push_back(shift_sign(facts, *lag));
  const RowOrder order = misplaced_rows(facts);
  if (order.rows > 0) signs.push_back(order_sign(facts, order));
  const Onsets found = onsets(facts);
  const bool few = found.rows > 0 && 2 * found.rows <= facts.counts.sequences;
  if (few && share_of(found.tails.absolute, facts) >= 0.5)
    signs.push_back(onset_sign(facts, found));
  return signs;
}

}  // namespace gradcheck
