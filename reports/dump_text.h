// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "model/dumps.h"
#include "reports/page.h"

namespace gradcheck {

// One reading of dumped tensors: who stands with whom, distances as a histogram, the worst tensors;
// which file is which rank where something differs or -v asks.
void add_dumps(Page& page, std::size_t indent, const DumpReading& reading);

}  // namespace gradcheck
