// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/outcome.h"

namespace gradcheck {

enum class Style : std::uint8_t { plain, bold, dim, green, red, yellow };

Style style_of(Verdict verdict);

// `text` between the style's escape sequences; unchanged where `colour` is false.
std::string paint(std::string_view text, Style style, bool colour);

enum class ColourChoice : std::uint8_t { automatic, always, never };  // --color

// The variables that programs share for colour; the caller reads them (no-color.org,
// force-color.org, bixense.com/clicolors).
struct ColourEnvironment {
  std::optional<std::string> no_color;
  std::optional<std::string> force_color;
  std::optional<std::string> clicolor_force;
  std::optional<std::string> term;
};

// The option beats the environment; NO_COLOR, if not empty, beats the two that force ("0" and
// empty do not force); TERM=dumb and anything that is not a terminal get no colour.
bool use_colour(ColourChoice choice, const ColourEnvironment& environment, bool is_terminal);

}  // namespace gradcheck
