// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "verdict/logp/shape.h"
#include "verdict/logp/signs.h"

namespace gradcheck {
namespace {

constexpr double kNoticeable = 5e-3;
constexpr double kCleanShare = 0.2;  // mean |delta| of clean rows over that of the others
constexpr double kEarly = 0.7;       // late over early below this: worst at the start
constexpr std::int64_t kFewestRows = 4;
constexpr std::size_t kLargestPack = 16;  // sequences a row
constexpr double kDirtyShare = 0.9;       // of rows that are not the first of their pack

// Masked-out tokens before the first and after the last that counts: padding, where a dump is
// padded (a prompt counts as padding on every row alike).
std::size_t padding_of(const LogProbShard& shard, std::size_t row) {
  std::size_t begin = shard.offsets[row], end = shard.offsets[row + 1];
  std::size_t padding = 0;
  while (begin < end && !counts(shard, begin)) ++begin, ++padding;
  while (end > begin && !counts(shard, end - 1)) --end, ++padding;
  return padding;
}

// Rows with the least padding of all against the rest.
struct ByPadding {
  DeltaSums least, more;
  std::int64_t least_rows = 0, more_rows = 0;
  std::size_t fewest = 0;
};

ByPadding by_padding(const LogProbFacts& facts) {
  ByPadding result;
  result.fewest = static_cast<std::size_t>(-1);
  for (const RowSums& row : facts.sums.rows) {
    result.fewest = std::min(result.fewest, padding_of(*row.shard, row.row));
  }
  for (const RowSums& row : facts.sums.rows) {
    const bool least = padding_of(*row.shard, row.row) == result.fewest;
    add(least ? result.least : result.more, row.sums);
    ++(least ? result.least_rows : result.more_rows);
  }
  return result;
}

bool follows_padding(const ByPadding& rows) {
  return rows.least_rows >= 1 && rows.more_rows >= kFewestRows && rows.more.mean_abs() > 0 &&
         rows.least.mean_abs() <= kCleanShare * rows.more.mean_abs();
}

// Rows that stand out are judged by the band of all.
void judge_rows(const LogProbFacts& facts, const DeltaSums& rows, Sign& sign) {
  if (rows.tokens == 0 || level_of(facts, rows) < BandLevel::fail) return;
  sign.code = 501;
  sign.count = static_cast<std::uint64_t>(rows.tokens);
}

Sign padding_sign(const LogProbFacts& facts, const ByPadding& rows) {
  const Profile profile = profile_of(
      facts, [&](const RowSums& row) { return padding_of(*row.shard, row.row) != rows.fewest; });
  const Cause cause = profile.ratio() < kEarly ? Cause::padding : Cause::position_ids;
  Sign sign;
  judge_rows(facts, rows.more, sign);
  sign.explains = rows.more.absolute / facts.sums.all.absolute;
  sign.signature = {"padded_rows", Confidence::likely, false,
                    fmt::format("{} rows with more padding differ by {}, {} with {} masked tokens "
                                "or fewer by {}",
                                rows.more_rows, number_text(rows.more.mean_abs()), rows.least_rows,
                                rows.fewest, number_text(rows.least.mean_abs()))};
  sign.claim = claim_of(cause, Confidence::likely,
                        {sign.signature.text,
                         fmt::format("the last quarter of these rows differs {} times as much as "
                                     "the first",
                                     number_text(profile.ratio()))});
  return sign;
}

// Every `size`-th row from the first on is clean and hardly any other is.
template <typename IsDirty>
bool starts_packs(const LogProbFacts& facts, std::size_t size, const IsDirty& is_dirty) {
  std::int64_t first = 0, later = 0, dirty = 0;
  for (const RowSums& row : facts.sums.rows) {
    if (row.sums.tokens == 0) continue;
    const bool differs = is_dirty(row);
    const bool is_first = row.row % size == 0;
    if (is_first && differs) return false;
    ++(is_first ? first : later);
    dirty += differs ? 1 : 0;
  }
  return first >= kFewestRows && later >= kFewestRows &&
         static_cast<double>(dirty) >= kDirtyShare * static_cast<double>(later);
}

// Clean rows at one distance, whatever the profile of the others: nothing but their place among
// the rows sets them apart.
std::optional<Sign> regular_packs_sign(const LogProbFacts& facts) {
  const double bound = kCleanShare * facts.statistics.mean_abs;
  const auto is_dirty = [&](const RowSums& row) { return row.sums.mean_abs() > bound; };
  std::size_t size = 2;
  while (size <= kLargestPack && !starts_packs(facts, size, is_dirty)) ++size;
  if (size > kLargestPack) return std::nullopt;
  DeltaSums dirty;
  for (const RowSums& row : facts.sums.rows) {
    if (is_dirty(row)) add(dirty, row.sums);
  }
  Sign sign;
  judge_rows(facts, dirty, sign);
  sign.explains = 1;
  sign.signature = {"packs", Confidence::likely, false,
                    fmt::format("one row in {}, always the first, is clean; the others differ by "
                                "{}",
                                size, number_text(dirty.mean_abs()))};
  sign.claim = claim_of(Cause::packing, Confidence::likely, {sign.signature.text},
                        {"rows that take turns for another reason look alike"});
  return sign;
}

// Clean rows among rows that differ most at their start: the first ones of packs.
std::optional<Sign> packing_sign(const LogProbFacts& facts) {
  const double bound = kCleanShare * facts.statistics.mean_abs;
  const auto is_dirty = [&](const RowSums& row) { return row.sums.mean_abs() > bound; };
  const auto rows = static_cast<std::int64_t>(facts.sums.rows.size());
  const Profile profile = profile_of(facts, is_dirty);
  std::int64_t clean = 0;
  DeltaSums dirty;
  for (const RowSums& row : facts.sums.rows) {
    clean += is_dirty(row) ? 0 : 1;
    if (is_dirty(row)) add(dirty, row.sums);
  }
  // A few spikes make any profile.
  const bool spiky = facts.statistics.top_share >= 0.25 && facts.statistics.kurtosis >= 20;
  if (profile.rows < kFewestRows || profile.ratio() >= kEarly || spiky) return std::nullopt;
  const bool some_clean = clean >= 2 && rows - clean >= kFewestRows;
  Sign sign;
  if (some_clean) judge_rows(facts, dirty, sign);
  sign.explains = some_clean ? 1 : 0.5;
  const Confidence confidence = some_clean ? Confidence::likely : Confidence::possible;
  sign.signature = {
      "early", confidence, false,
      fmt::format("{} of {} rows are clean; in the others the first quarter differs "
                  "by {}, the last by {}",
                  clean, rows, number_text(profile.early), number_text(profile.late))};
  sign.claim = claim_of(Cause::packing, confidence, {sign.signature.text},
                        {"padding that is attended to looks alike where rows are padded"});
  return sign;
}

// Grows along rows, no padding known.
std::optional<Sign> late_sign(const LogProbFacts& facts) {
  const Profile profile = profile_of(facts, [](const RowSums&) { return true; });
  if (profile.rows < kFewestRows || profile.ratio() < 3) return std::nullopt;
  Sign sign;
  sign.explains = 0.5;
  sign.signature = {"late", Confidence::possible, false,
                    fmt::format("the first quarter of rows differs by {}, the last by {}",
                                number_text(profile.early), number_text(profile.late))};
  sign.claim = claim_of(Cause::position_ids, Confidence::possible, {sign.signature.text},
                        {"attention kernels, too, err more the longer a row is"});
  return sign;
}

}  // namespace

std::vector<Sign> see_profiles(const LogProbFacts& facts) {
  if (facts.statistics.mean_abs < kNoticeable) return {};
  const ByPadding rows = by_padding(facts);
  if (follows_padding(rows)) return {padding_sign(facts, rows)};
  if (const auto packs = regular_packs_sign(facts)) return {*packs};
  if (const auto packing = packing_sign(facts)) return {*packing};
  if (const auto late = late_sign(facts)) return {*late};
  return {};
}

}  // namespace gradcheck
