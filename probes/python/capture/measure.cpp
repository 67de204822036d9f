// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/measure.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "probes/python/capture/gather.h"

namespace gradcheck::capture {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} * 1024;
constexpr std::size_t kChunkBytes = std::size_t{16} * 1024;  // hashed while still in L1

// All bits but the signs, over the elements of eight bytes.
std::uint64_t magnitude_mask(DType dtype) {
  if (dtype == DType::f64) return 0x7fffffffffffffffU;
  if (dtype == DType::f32) return 0x7fffffff7fffffffU;
  return 0x7fff7fff7fff7fffU;  // f16, bf16
}

bool is_zero_chunk(std::span<const std::byte> chunk, std::uint64_t mask) {
  std::uint64_t any = 0;
  std::size_t done = 0;
  for (; done + sizeof any <= chunk.size(); done += sizeof any) {
    std::uint64_t word;
    std::memcpy(&word, chunk.data() + done, sizeof word);
    any |= word;
  }
  std::uint64_t rest = 0;
  if (done < chunk.size()) std::memcpy(&rest, chunk.data() + done, chunk.size() - done);
  return ((any | rest) & mask) == 0;
}

}  // namespace

std::span<std::byte> Meter::buffer() {
  buffer_.resize(kBufferBytes);
  return buffer_;
}

TensorStats Meter::measure(const View& view, KernelMode mode) {
  Kernel kernel(view.form.dtype, mode);
  if (view.is_contiguous()) {
    kernel.update({view.data, view.bytes});
    return kernel.finish();
  }
  Gather elements(view);
  for (std::uint64_t left = view.bytes; left > 0;) {
    const auto chunk = buffer().first(std::min<std::uint64_t>(left, kBufferBytes));
    elements.next(chunk);
    kernel.update(chunk);
    left -= chunk.size();
  }
  return kernel.finish();
}

TensorStats Meter::copy_and_measure(const View& view, KernelMode mode, std::span<std::byte> to) {
  const std::size_t chunk_bytes = view.is_contiguous() ? kChunkBytes : kBufferBytes;
  Kernel kernel(view.form.dtype, mode);
  Gather elements(view);
  while (!to.empty()) {
    const auto chunk = to.first(std::min(to.size(), chunk_bytes));
    elements.next(chunk);
    kernel.update(chunk);
    to = to.subspan(chunk.size());
  }
  return kernel.finish();
}

bool Meter::is_zero(const View& view) {
  const std::uint64_t mask = magnitude_mask(view.form.dtype);
  Gather elements(view);
  for (std::uint64_t done = 0; done < view.bytes;) {
    const std::uint64_t count = std::min<std::uint64_t>(view.bytes - done, kChunkBytes);
    std::span<const std::byte> chunk(view.data + done, view.is_contiguous() ? count : 0);
    if (!view.is_contiguous()) {
      elements.next(buffer().first(count));
      chunk = buffer().first(count);
    }
    if (!is_zero_chunk(chunk, mask)) return false;
    done += count;
  }
  return true;
}

}  // namespace gradcheck::capture
