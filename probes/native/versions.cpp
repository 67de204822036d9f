// SPDX-License-Identifier: Apache-2.0
#include "probes/native/versions.h"

#include <torch/headeronly/version.h>
#include <unistd.h>

namespace gradcheck::native {
namespace {

#ifdef USE_C10D_GLOO
constexpr bool kGloo = true;
#else
constexpr bool kGloo = false;
#endif
#ifdef USE_C10D_NCCL
constexpr bool kNccl = true;
#else
constexpr bool kNccl = false;
#endif
#ifdef USE_CUDA
constexpr bool kCuda = true;
#else
constexpr bool kCuda = false;
#endif

}  // namespace

std::vector<std::pair<std::string, std::string>> versions() {
  return {{"gradcheck", GRADCHECK_VERSION}, {"torch", TORCH_VERSION}, {"compiler", __VERSION__}};
}

ReadyPacket ready_packet() { return {TORCH_VERSION, kGloo, kNccl, kCuda, getpid()}; }

}  // namespace gradcheck::native
