// SPDX-License-Identifier: Apache-2.0
#include "reports/log_prob_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/numbers.h"
#include "reports/table.h"
#include "reports/text.h"

namespace gradcheck {
namespace {

constexpr std::size_t kSparks = 64;  // micro-batches in one line
constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string number(double value) { return short_number(value); }

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

std::string regime_text(const LogProbReading& r) {
  std::string text = fmt::format("{} ({}: {}), {} ({})", name_of(r.regime), r.regime_source,
                                 r.regime_reason, r.dtype, r.dtype_source);
  const LogProbBand& band = r.band;
  text += fmt::format("; {} up to {} passes, {} is a note, {} a warning", band.number,
                      number(band.pass), number(band.note), number(band.warning));
  if (band.k3_pass) {
    text += fmt::format("; k3 up to {} passes, {} is a note", number(*band.k3_pass),
                        number(band.k3_warning.value_or(*band.k3_pass)));
  }
  return text + fmt::format("; limits of {}", band.source);
}

std::string counts_text(const LogProbCounts& c) {
  return fmt::format(
      "{} in {} on {}, {} masked out; {} compared, {} equal bit for bit; not finite: {} old, {} "
      "new; above 0: {} old, {} new; exactly 0: {} old, {} new",
      plural(c.tokens, "token"), plural(c.sequences, "sequence"), plural(c.ranks, "rank"),
      c.masked_out, c.compared, c.identical, c.nonfinite_old, c.nonfinite_new, c.positive_old,
      c.positive_new, c.zero_old, c.zero_new);
}

std::string delta_text(const LogProbStatistics& s) {
  return fmt::format(
      "Δ = new − old: mean {}, mean |Δ| {} (by sequence {}), sd {}, |Δ| p50 {} p95 {} p99 {} max "
      "{}",
      number(s.mean), number(s.mean_abs), number(s.sequence_mean_abs), number(s.sd), number(s.p50),
      number(s.p95), number(s.p99), number(s.max_abs));
}

std::string ratio_text(const LogProbStatistics& s) {
  return fmt::format("mean e^Δ − 1 = {} ± {} (by sequence; z {}); a bias of {} would show; ESS {}",
                     number(s.mean_ratio), number(s.mean_ratio_se), short_number(s.z),
                     number(s.detectable_bias), number(s.ess));
}

std::string divergence_text(const LogProbStatistics& s) {
  return fmt::format(
      "k1 = −mean Δ {}, k2 = mean Δ²/2 {}, k3 = mean(e^Δ − 1 − Δ) {}, reversed {}, JS {}, χ² {} "
      "(sequences {})",
      number(s.k1), number(s.k2), number(s.k3), number(s.k3_reversed), number(s.js), number(s.chi2),
      number(s.chi2_sequence));
}

std::string outside_text(const LogProbStatistics& s) {
  std::string text =
      fmt::format("|e^Δ − 1| above 1 %: {}, 5 %: {}, 10 %: {}, 20 %: {}", percent(s.outside_1),
                  percent(s.outside_5), percent(s.outside_10), percent(s.outside_20));
  if (s.outside_clip) text += ", the clip range: " + percent(*s.outside_clip);
  return text;
}

std::string sequence_text(const LogProbStatistics& s) {
  return fmt::format(
      "e^(mean Δ) p5 {:.3g} p50 {:.3g} p95 {:.3g}; e^(ΣΔ) p5 {:.3g} p50 {:.3g} "
      "p95 {:.3g}",
      s.geometric_p5, s.geometric_p50, s.geometric_p95, s.product_p5, s.product_p50, s.product_p95);
}

std::string named_text(const LogProbStatistics& s) {
  return fmt::format(
      "verl rollout_probs_diff mean {} max {} std {}, pearson {}; NeMo-RL token_mult_prob_error "
      "{:.6g}",
      number(s.probability_mean), number(s.probability_max), number(s.probability_sd),
      s.pearson ? fmt::format("{:.5g}", *s.pearson) : "?", s.tme);
}

std::string noise_text(const LogProbStatistics& s) {
  std::vector<std::string> parts;
  if (s.repeat_mean_abs) parts.push_back("mean |repeat − new| " + number(*s.repeat_mean_abs));
  if (s.entropy_excess) {
    parts.push_back(fmt::format("surprisal − entropy {} (z {})", number(*s.entropy_excess),
                                short_number(s.entropy_excess_z)));
  }
  return joined(parts, "; ");
}

std::string profile_text(const std::vector<LogProbGroup>& groups, std::string_view of) {
  if (groups.empty()) return "";
  return fmt::format("{}  mean |Δ| over {}, {} to {}", sparkline(groups), of,
                     printable(groups.front().label), printable(groups.back().label));
}

Table group_table(const std::vector<LogProbGroup>& groups, const char* title) {
  Table table;
  table.columns = {{title},
                   {"tokens", Align::right},
                   {"mean Δ", Align::right},
                   {"mean |Δ|", Align::right},
                   {"max |Δ|", Align::right},
                   {"mean e^Δ − 1", Align::right},
                   {"equal", Align::right}};
  for (const LogProbGroup& g : groups) {
    if (g.tokens == 0) continue;
    table.rows.push_back({printable(g.label), std::to_string(g.tokens), number(g.mean),
                          number(g.mean_abs), number(g.max_abs), number(g.mean_ratio),
                          percent(g.identical)});
  }
  return table;
}

Table token_table(const std::vector<LogProbToken>& tokens) {
  Table table;
  table.columns = {{"rank", Align::right},     {"row", Align::right},
                   {"position", Align::right}, {"token", Align::right},
                   {"old", Align::right},      {"new", Align::right},
                   {"Δ", Align::right},        {"remarks"}};
  for (const LogProbToken& t : tokens) {
    table.rows.push_back({std::to_string(t.rank), std::to_string(t.row), std::to_string(t.position),
                          t.token_id ? std::to_string(*t.token_id) : "",
                          fmt::format("{:.6g}", t.old_value), fmt::format("{:.6g}", t.new_value),
                          number(t.delta), printable(t.flags)});
  }
  return table;
}

Table row_table(const std::vector<LogProbRow>& rows) {
  Table table;
  table.columns = {{"rank", Align::right},   {"row", Align::right},      {"tokens", Align::right},
                   {"mean Δ", Align::right}, {"mean |Δ|", Align::right}, {"max |Δ|", Align::right}};
  for (const LogProbRow& r : rows) {
    table.rows.push_back({std::to_string(r.rank), std::to_string(r.row), std::to_string(r.tokens),
                          number(r.mean), number(r.mean_abs), number(r.max_abs)});
  }
  return table;
}

void add_table(Page& page, std::size_t indent, std::string_view title, const Table& table) {
  const std::vector<std::string> lines = lines_of(table);
  if (lines.empty()) return;
  page.line(std::string(indent, ' ') + page.paint(title, Style::bold));
  page.lines(indent + 2, lines);
}

void add_numbers(Page& page, std::size_t indent, const LogProbStatistics& s) {
  page.labelled(indent, "delta", Style::dim, delta_text(s));
  page.labelled(indent, "ratio", Style::dim, ratio_text(s));
  page.labelled(indent, "KL", Style::dim, divergence_text(s));
  page.labelled(indent, "outside", Style::dim, outside_text(s));
  page.labelled(indent, "sequence", Style::dim, sequence_text(s));
  page.labelled(indent, "elsewhere", Style::dim, named_text(s));
  page.labelled(indent, "noise", Style::dim, noise_text(s));
}

void add_signatures(Page& page, std::size_t indent, const LogProbReading& reading) {
  for (const LogProbSignature& s : reading.signatures) {
    page.labelled(indent, "seen", Style::dim,
                  fmt::format("{} ({}): {}", printable(s.name),
                              s.declared ? "declared" : std::string(name_of(s.confidence)),
                              printable(s.text)));
  }
  for (const LogProbPair& p : reading.pairs) {
    page.labelled(indent, "also", Style::dim,
                  fmt::format("{}: mean {}, mean |Δ| {}, max {}, k3 {} over {}", printable(p.name),
                              number(p.mean), number(p.mean_abs), number(p.max_abs), number(p.k3),
                              plural(p.tokens, "token")));
  }
}

void add_details(Page& page, std::size_t indent, const LogProbReading& reading) {
  if (reading.by_rank.size() > 1) {
    add_table(page, indent, "ranks", group_table(reading.by_rank, "rank"));
  }
  if (reading.by_micro_batch.size() > 1 && reading.by_micro_batch.size() <= kSparks) {
    page.labelled(indent, "", Style::dim, profile_text(reading.by_micro_batch, "micro-batches"));
  }
  if (!reading.worst_tokens.empty()) {
    add_table(page, indent, "worst tokens", token_table(reading.worst_tokens));
  }
  if (page.options().verbosity == 0) return;
  add_table(page, indent, "worst rows", row_table(reading.worst_rows));
  add_table(page, indent, "by old log-prob", group_table(reading.by_log_prob, "old"));
  add_table(page, indent, "by micro-batch", group_table(reading.by_micro_batch, "micro-batch"));
  add_table(page, indent, "by position", group_table(reading.by_position, "position"));
}

}  // namespace

std::string sparkline(const std::vector<LogProbGroup>& groups) {
  double largest = 0;
  for (const LogProbGroup& group : groups) {
    if (group.tokens > 0 && std::isfinite(group.mean_abs))
      largest = std::max(largest, group.mean_abs);
  }
  std::string line;
  for (const LogProbGroup& group : groups) {
    if (group.tokens == 0) {
      line += ' ';
    } else if (!std::isfinite(group.mean_abs)) {
      line += '?';
    } else {
      const double part = largest > 0 ? group.mean_abs / largest : 0;
      line += kBlocks[std::min<std::size_t>(7, static_cast<std::size_t>(8 * part))];
    }
  }
  return line;
}

void add_log_probs(Page& page, std::size_t indent, const LogProbArm& judged) {
  const LogProbReading& reading = judged.reading;
  if (reading.counts.tokens == 0) return;
  if (!judged.name.empty()) {
    const std::string text =
        fmt::format("'{}' of step {}, handed over by {}", judged.name, judged.step, judged.source);
    page.labelled(indent, "log-probs", Style::dim, printable(text));
  }
  page.labelled(indent, "regime", Style::dim, printable(regime_text(reading)));
  page.labelled(indent, "counts", Style::dim, counts_text(reading.counts));
  add_signatures(page, indent, reading);
  if (reading.counts.compared > 0) {
    add_numbers(page, indent, reading.statistics);
    page.labelled(indent, "profile", Style::dim, profile_text(reading.by_position, "positions"));
    page.labelled(indent, "", Style::dim, profile_text(reading.by_log_prob, "old log-probs"));
  }
  add_details(page, indent, reading);
  for (const std::string& note : reading.notes) {
    page.labelled(indent, "note", Style::dim, printable(note));
  }
}

}  // namespace gradcheck
