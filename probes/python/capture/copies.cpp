// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/copies.h"

#include <iterator>
#include <new>
#include <utility>

namespace gradcheck::capture {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line

// Null where there is no memory. Ordinary pages: huge ones would make the first copy up to three
// times faster, or many times slower where the system has to move memory first.
std::byte* allocate(std::uint64_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
}

void release(std::byte* memory) { ::operator delete(memory, kAlignment); }

}  // namespace

Pool::~Pool() {
  for (const auto& [size, memory] : idle_blocks_) release(memory);
}

void Pool::set_budget(std::uint64_t bytes) {
  budget_ = bytes;
  drop_idle(budget_ > used_ ? budget_ - used_ : 0);
}

std::shared_ptr<const Pool::Block> Pool::take(std::uint64_t bytes) {
  if (used_ > budget_ || bytes > budget_ - used_) return nullptr;
  std::byte* memory = nullptr;
  if (const auto found = idle_blocks_.find(bytes); found != idle_blocks_.end()) {
    memory = found->second;
    idle_blocks_.erase(found);
    idle_ -= bytes;
  } else {
    drop_idle(budget_ - used_ - bytes);
    memory = allocate(bytes);
  }
  if (memory == nullptr) return nullptr;
  used_ += bytes;
  return std::make_shared<const Block>(*this, std::span(memory, bytes));
}

void Pool::give_back(std::span<std::byte> bytes) noexcept {
  used_ -= bytes.size();
  try {
    idle_blocks_.emplace(bytes.size(), bytes.data());
  } catch (...) {  // no memory to remember it by
    release(bytes.data());
    return;
  }
  idle_ += bytes.size();
  if (used_ + idle_ > budget_) drop_idle(budget_ > used_ ? budget_ - used_ : 0);
}

// Largest first: few of them make much room.
void Pool::drop_idle(std::uint64_t bytes_to_leave) {
  while (idle_ > bytes_to_leave) {
    const auto largest = std::prev(idle_blocks_.end());
    idle_ -= largest->first;
    release(largest->second);
    idle_blocks_.erase(largest);
  }
}

void Copies::keep(const Moment& moment, std::int32_t slot, Copy copy) {
  moments_[moment].insert_or_assign(slot, std::move(copy));
}

const Copy* Copies::find(const Moment& moment, std::int32_t slot) const {
  const auto slots = moments_.find(moment);
  if (slots == moments_.end()) return nullptr;
  const auto found = slots->second.find(slot);
  return found == slots->second.end() ? nullptr : &found->second;
}

void Copies::forget_before(std::int64_t step) {
  while (!moments_.empty() && moments_.begin()->first.step < step) {
    moments_.erase(moments_.begin());
  }
}

}  // namespace gradcheck::capture
