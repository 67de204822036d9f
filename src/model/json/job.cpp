// SPDX-License-Identifier: Apache-2.0
#include "model/json/job.h"

#include <nlohmann/json.hpp>

namespace gradcheck {

// A path need not be UTF-8; what is not is replaced, and the agent will not find it.
std::string to_text(const JobVariables& job) {
  const nlohmann::ordered_json json = {
      {"schema", "job-1"},           {"run", job.run},           {"directory", job.directory},
      {"socket", job.socket},        {"evidence", job.evidence}, {"library", job.library},
      {"every", job.every},          {"steps", job.steps},       {"exact", job.exact},
      {"keep_bytes", job.keep_bytes}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace gradcheck
