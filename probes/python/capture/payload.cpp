// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "evidence/write/safetensors.h"
#include "model/dtype.h"
#include "probes/python/capture/session.h"

namespace gradcheck::capture {

// A full disk gets its space back.
void write_or_remove(const std::string& path, std::span<const NamedTensor> tensors) {
  try {
    write_safetensors(path, tensors);
  } catch (...) {
    ::unlink((path + ".tmp").c_str());
    throw;
  }
}

std::int32_t Session::payload(const PayloadRequest& request, std::span<std::uint8_t> written) {
  std::vector<NamedTensor> chosen;
  std::vector<std::uint8_t> is_chosen(request.slots.size(), 0);
  std::vector<bool> seen(slots_.size(), false);  // keys must be distinct
  std::uint64_t left = request.budget_bytes;
  for (std::size_t i = 0; i < request.slots.size(); ++i) {
    const Slot& slot = slot_at(request.slots[i]);
    const Copy* copy = copies_.find(request.moment, request.slots[i]);
    const auto at = static_cast<std::size_t>(request.slots[i]);
    if (copy == nullptr || seen[at] || safetensors_name_of(copy->form.dtype).empty()) continue;
    const std::span<const std::byte> bytes = copy->block->bytes();
    if (bytes.size() > left) break;  // most wanted first: nothing behind this one may overtake it
    left -= bytes.size();
    seen[at] = true;
    is_chosen[i] = 1;
    chosen.push_back(
        {models_[slot.model].name + "/" + slot.name, copy->form.dtype, copy->form.shape, bytes});
  }
  if (!chosen.empty()) write_or_remove(request.path, chosen);
  std::copy(is_chosen.begin(), is_chosen.end(), written.begin());
  return static_cast<std::int32_t>(chosen.size());
}

}  // namespace gradcheck::capture
