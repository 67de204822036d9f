// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/fsdp_units.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace gradcheck::native {
namespace {

constexpr std::string_view kLayers = "model.layers.";
constexpr long kRoot = -1;

long layer_of(const std::string& name) {
  return name.starts_with(kLayers) ? std::stol(name.substr(kLayers.size())) : kRoot;
}

}  // namespace

Units fsdp_units(const ModelTensors& parameters) {
  std::map<long, std::vector<std::size_t>, std::greater<>> by_layer;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    by_layer[layer_of(parameters[i].name)].push_back(i);
  }
  Units units;
  for (const auto& [layer, members] : by_layer) units.push_back(members);
  return units;
}

}  // namespace gradcheck::native
