// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace gloo {
namespace rendezvous {

// Declared in the order of Gloo's own class without the v2 calls (GLOO_STORE_HAS_STORE_V2 stays
// undefined), because ProcessGroupGloo.hpp derives from it.
class Store {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(30);
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& /*timeout*/) {
    wait(keys);
  }
};

}  // namespace rendezvous
}  // namespace gloo
