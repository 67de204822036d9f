// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "reports/reporter.h"
#include "reports/sink.h"

namespace gradcheck {

// A format that is a function of the whole report. Nothing is written before the run has finished.
std::unique_ptr<Reporter> make_text_reporter(Sink sink, std::string (*text)(const Report&));

}  // namespace gradcheck
