// SPDX-License-Identifier: Apache-2.0
#include "probes/native/losses/autocast.h"

#include <ATen/autocast_mode.h>

namespace gradcheck::native {

Autocast::Autocast(bool on) : on_(on) {
  if (!on_) return;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace gradcheck::native
