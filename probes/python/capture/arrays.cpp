// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <set>
#include <stdexcept>

#include "evidence/write/safetensors.h"
#include "numeric/array_digest.h"
#include "probes/python/capture/session.h"

namespace gradcheck::capture {
namespace {

constexpr std::size_t kMaxKey = 256;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

void check_keys(std::span<const NamedView> arrays) {
  std::set<std::string_view> keys;
  if (arrays.empty()) refuse("there are no arrays");
  for (const NamedView& array : arrays) {
    if (array.key.empty() || array.key.size() > kMaxKey) refuse("a key is empty or too long");
    if (!keys.insert(array.key).second) refuse(array.key + " is there twice");
    if (array.view.presence != Presence::readable) refuse(array.key + " cannot be read");
    if (safetensors_name_of(array.view.form.dtype).empty()) {
      refuse(array.key + " has a type that files have no name for");
    }
  }
}

}  // namespace

// Copied first: the digest must be that of the bytes in the file, whoever writes to the tensors
// meanwhile.
Digest Session::arrays(const std::string& path, std::span<const NamedView> arrays) {
  if (!is_open()) throw std::runtime_error("the channel is closed");
  check_keys(arrays);
  std::vector<std::unique_ptr<std::byte[]>> copies;
  std::vector<NamedTensor> tensors;
  std::vector<ArrayStamp> stamps;
  for (const auto& [key, view] : arrays) {
    copies.push_back(std::make_unique_for_overwrite<std::byte[]>(view.bytes));
    const std::span<std::byte> bytes(copies.back().get(), view.bytes);
    const Digest digest = meter_.copy_and_measure(view, KernelMode::digest_only, bytes).digest;
    tensors.push_back({key, view.form.dtype, view.form.shape, bytes});
    stamps.push_back({key, view.form.dtype, view.form.shape, digest});
  }
  write_or_remove(path, tensors);
  return digest_of(stamps);
}

}  // namespace gradcheck::capture
