// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <span>

#include "model/evidence_table.h"
#include "model/payload_view.h"
#include "run/dump_files.h"

namespace gradcheck {

// Dumps as the evidence of one step: a rank's own tensors as gradients at `reduced`, its local ones
// at `local`. A tensor that another rank's dump holds is absent, not unrecorded: the files are all
// there is. A local that only some ranks have stays unrecorded: a gradient that was never made and
// one that was not saved look alike.
struct DumpTable {
  EvidenceTable table;
  PayloadViews payloads;  // of all tensors; they point into the dumps
};

// Streams through the dumps once. Tensors that are equal on all ranks are compared byte by byte and
// not digested; with `locals`, one a rank, or none, everything is measured.
DumpTable tabulate(std::span<const Dump> ranks, std::span<const Dump> locals);

}  // namespace gradcheck
