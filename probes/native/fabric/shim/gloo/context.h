// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <memory>

// The wheel of LibTorch carries Gloo inside libtorch_cpu.so but not its headers.
// ProcessGroupGloo.hpp needs these few declarations to be parsed; nothing here is ever defined or
// linked by us.
namespace gloo {
namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
