// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace gradcheck::capture {

// Where lines go. Descriptors are closed on exec and never 0, 1 or 2, where a job that has closed
// its standard streams would print into the evidence.
// Errors: std::invalid_argument for a path that cannot be one, InfrastructureError with path and
// reason otherwise.

// The front's Unix socket. A front that does not accept within `timeout_s` is an error.
int connect_socket(const std::string& path, double timeout_s);
int create_file(const std::string& path);  // which must not be there yet

}  // namespace gradcheck::capture
