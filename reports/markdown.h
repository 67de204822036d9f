// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>

#include "reports/reporter.h"
#include "reports/sink.h"

namespace gradcheck {

// GitHub drops a step summary above 1 MiB whole.
inline constexpr std::size_t kMarkdownBytes = 900'000;

// GitHub-flavoured Markdown for a step summary: a table of all arms, then what is wrong with those
// that did not end as expected. Below kMarkdownBytes whatever the run: what does not fit is counted
// in a last line "… n more". Written when the run has finished.
std::unique_ptr<Reporter> make_markdown_reporter(Sink sink);

}  // namespace gradcheck
