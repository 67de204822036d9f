// SPDX-License-Identifier: Apache-2.0
#include "reports/colour.h"

#include <fmt/format.h>

#include <array>

namespace gradcheck {
namespace {

// SGR parameters, in the order of Style.
constexpr std::array<std::string_view, 6> kParameters = {"", "1", "2", "32", "1;31", "33"};

bool is_set(const std::optional<std::string>& variable) { return variable && !variable->empty(); }

bool forces(const std::optional<std::string>& variable) {
  return is_set(variable) && *variable != "0";
}

}  // namespace

Style style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return Style::green;
    case Verdict::fail:
      return Style::red;
    case Verdict::error:
      return Style::yellow;
    case Verdict::skip:
      return Style::dim;
  }
  return Style::plain;
}

std::string paint(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kParameters[static_cast<std::size_t>(style)], text);
}

bool use_colour(ColourChoice choice, const ColourEnvironment& environment, bool is_terminal) {
  if (choice != ColourChoice::automatic) return choice == ColourChoice::always;
  if (is_set(environment.no_color)) return false;
  if (forces(environment.force_color) || forces(environment.clicolor_force)) return true;
  return is_terminal && environment.term != "dumb";
}

}  // namespace gradcheck
