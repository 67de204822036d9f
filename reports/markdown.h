// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "model/report.h"

namespace gradcheck {

// GitHub drops a step summary above 1 MiB whole.
inline constexpr std::size_t kMarkdownBytes = 900'000;

// GitHub-flavoured Markdown for a step summary: a table of all arms, then what is wrong with those
// that did not end as expected. Below kMarkdownBytes whatever the run: what does not fit is counted
// in a last line "… n more".
std::string markdown_text(const Report& report);

}  // namespace gradcheck
