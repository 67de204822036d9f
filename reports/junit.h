// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "reports/reporter.h"
#include "reports/sink.h"

namespace gradcheck {

// JUnit XML: a suite is a scenario, a case is an arm; failure, error and skipped are kept apart.
// Written when the run has finished. Names are unique and every character is legal in XML 1.0,
// because Jenkins and GitLab drop what is not.
std::unique_ptr<Reporter> make_junit_reporter(Sink sink);

}  // namespace gradcheck
