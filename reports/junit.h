// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "model/report.h"

namespace gradcheck {

// A `message` stands in lists of test cases, where dashboards cut or wrap it.
inline constexpr std::size_t kJunitMessageColumns = 200;

// JUnit XML: a suite is a scenario, a case is an arm; failure, error and skipped are kept apart.
// Names are unique and every character is legal in XML 1.0, because Jenkins and GitLab drop what is
// not.
std::string junit_text(const Report& report);

}  // namespace gradcheck
