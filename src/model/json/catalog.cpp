// SPDX-License-Identifier: Apache-2.0
#include "model/json/catalog.h"

#include <nlohmann/json.hpp>

namespace gradcheck {
namespace {

using Json = nlohmann::ordered_json;

Json entry_of(const Scenario& scenario) {
  Json arms = Json::array();
  for (const Arm& arm : scenario.arms) {
    const Outcome expected = arm.expect.outcome.value_or(Outcome::consistent);
    arms.push_back({{"name", arm.name}, {"expected", name_of(expected)}});
  }
  return {{"name", scenario.name},
          {"file", scenario.file},
          {"description", scenario.description},
          {"ranks", scenario.ranks},
          {"steps", scenario.steps},
          {"micro_steps", scenario.micro_steps},
          {"seed", scenario.seed},
          {"needs", scenario.needs},
          {"tags", scenario.tags},
          {"arms", arms}};
}

}  // namespace

std::string catalog_to_json(const std::vector<Scenario>& scenarios) {
  Json list = Json::array();
  for (const Scenario& scenario : scenarios) list.push_back(entry_of(scenario));
  return list.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gradcheck
