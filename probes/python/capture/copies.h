// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "model/record.h"
#include "model/tensor_stats.h"
#include "probes/python/capture/view.h"

namespace gradcheck::capture {

// Memory for copies within a budget. What is given back is kept for the next copy of that size:
// fresh memory in every step costs more than the copying, because the system has to find and clear
// its pages. Outlives its blocks.
class Pool {
 public:
  // Gives itself back.
  class Block {
   public:
    Block(Pool& pool, std::span<std::byte> bytes) : pool_(pool), bytes_(bytes) {}
    ~Block() { pool_.give_back(bytes_); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    std::span<std::byte> bytes() const { return bytes_; }

   private:
    Pool& pool_;
    std::span<std::byte> bytes_;
  };

  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // What is in use stays, even above a lower budget.
  void set_budget(std::uint64_t bytes);
  // Null where the budget or the machine has no room.
  std::shared_ptr<const Block> take(std::uint64_t bytes);

 private:
  void give_back(std::span<std::byte> bytes) noexcept;
  void drop_idle(std::uint64_t bytes_to_leave);

  std::uint64_t budget_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t idle_ = 0;
  std::multimap<std::uint64_t, std::byte*> idle_blocks_;  // by size
};

struct Moment {
  std::int64_t step = 0;
  std::int64_t micro = 0;
  Stage stage = Stage::start;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

// A tensor's elements, row-major, and the digest that its record has. Empty: nothing was kept.
struct Copy {
  std::shared_ptr<const Pool::Block> block;
  Form form;
  Digest digest;
};

// The copies that a `want` can still be answered from, by moment and slot.
class Copies {
 public:
  void keep(const Moment& moment, std::int32_t slot, Copy copy);
  const Copy* find(const Moment& moment, std::int32_t slot) const;  // null: none
  void forget_before(std::int64_t step);
  void clear() { moments_.clear(); }

 private:
  std::map<Moment, std::map<std::int32_t, Copy>> moments_;
};

}  // namespace gradcheck::capture
