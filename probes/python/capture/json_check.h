// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace gradcheck::capture {

// True for one JSON object as the reader takes it (RFC 8259; UTF-8, no lone surrogates, nesting to
// 32). A line that the reader refuses makes the whole run an error, so the bare NaN of a careless
// producer must be caught before it is sent.
bool is_json_object(std::string_view text);

}  // namespace gradcheck::capture
