// SPDX-License-Identifier: Apache-2.0
#include "numeric/kernel.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "numeric/kernel_isa.h"
#include "numeric/kernel_portable.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcheck {
namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && has_avx2();
}

bool is_available(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return true;
    case Isa::avx2:
      return has_avx2();
    case Isa::avx512:
      return has_avx512();
  }
  return false;
}

const IsaFunctions& functions_of(Isa isa) {
  if (!is_available(isa)) {
    throw std::invalid_argument("this processor has no " + std::string(name_of(isa)));
  }
  if (isa == Isa::avx512) return kAvx512;
  return isa == Isa::avx2 ? kAvx2 : kPortable;
}

AddBlocks adder_of(const IsaFunctions& functions, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return functions.f64;
    case DType::f32:
      return functions.f32;
    case DType::f16:
      return functions.f16;
    case DType::bf16:
      return functions.bf16;
    default:
      return nullptr;
  }
}

Lanes no_elements() {
  Lanes lanes{};
  lanes.min = std::numeric_limits<double>::infinity();
  lanes.max = -lanes.min;
  return lanes;
}

// The program under test may round otherwise or flush subnormals on this thread
// (torch.set_flush_denormal); the sums must not depend on it.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

// Halves are added to each other until one lane is left.
double total(const double (&lanes)[kLanes]) {
  double sums[kLanes];
  std::copy(std::begin(lanes), std::end(lanes), sums);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

// Sums beyond the range of double are held at its largest number: records hold finite ones only.
double saturated(double sum) { return std::min(sum, std::numeric_limits<double>::max()); }

void copy_norms(TensorStats& stats, const Lanes& lanes) {
  stats.nan = lanes.nan;
  stats.inf = lanes.inf;
  stats.zeros = lanes.zeros;
  stats.l1 = saturated(total(lanes.l1));
  stats.l2 = saturated(std::sqrt(total(lanes.squares)));
  stats.measured = true;
}

// Adding +0 turns −0 into +0: which zero a vector minimum returns depends on the instruction set.
void copy_extrema(TensorStats& stats, const Lanes& lanes) {
  if (stats.n == stats.nan + stats.inf) return;
  stats.min = lanes.min + 0.0;
  stats.max = lanes.max + 0.0;
  stats.max_abs = std::max(std::fabs(stats.min), std::fabs(stats.max));
}

void copy_sketch(TensorStats& stats, const Lanes& lanes) {
  stats.has_sketch = std::all_of(std::begin(lanes.sketch), std::end(lanes.sketch),
                                 [](double bucket) { return std::isfinite(bucket); });
  if (stats.has_sketch)
    std::copy(std::begin(lanes.sketch), std::end(lanes.sketch), stats.sketch.begin());
}

}  // namespace

struct Kernel::State {
  const IsaFunctions* functions = nullptr;
  AddBlocks add_blocks = nullptr;  // null: digest and count only
  DType dtype = DType::other;
  std::size_t element_size = 1;
  std::uint64_t next = 0;  // global index of the next element
  std::uint64_t n = 0;
  XXH3_state_t hash;
  Lanes lanes = no_elements();

  void add(std::span<const std::byte> chunk);
  std::size_t next_chunk(std::size_t bytes) const;
};

// The first chunk ends at a block boundary of the full tensor, so the others hold whole blocks.
std::size_t Kernel::State::next_chunk(std::size_t bytes) const {
  const std::size_t head = (kLanes - next % kLanes) % kLanes;
  return std::min(bytes, head > 0 ? head * element_size : kChunkBytes);
}

void Kernel::State::add(std::span<const std::byte> chunk) {
  const std::uint64_t count = chunk.size() / element_size;
  const std::uint64_t blocks = next % kLanes == 0 ? count / kLanes : 0;
  std::uint64_t done = blocks * kLanes;
  const auto* data = reinterpret_cast<const unsigned char*>(chunk.data());
  if (done > 0 && !add_blocks(&lanes, data, next / kLanes, blocks)) done = 0;
  add_elements(dtype, lanes, chunk.data() + done * element_size, next + done, count - done);
  next += count;
}

std::string_view name_of(Isa isa) {
  constexpr std::string_view kNames[] = {"portable", "avx2", "avx512"};
  return kNames[static_cast<std::size_t>(isa)];
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (is_available(isa)) isas.push_back(isa);
  }
  return isas;
}

Isa best_isa() { return has_avx512() ? Isa::avx512 : has_avx2() ? Isa::avx2 : Isa::portable; }

Kernel::Kernel(DType dtype, KernelMode mode, std::uint64_t first_index, Isa isa)
    : state_(std::make_unique<State>()) {
  state_->functions = &functions_of(isa);
  if (mode == KernelMode::full) state_->add_blocks = adder_of(*state_->functions, dtype);
  state_->dtype = dtype;
  state_->element_size = std::max<std::size_t>(size_of(dtype), 1);
  state_->next = first_index;
  XXH3_128bits_reset(&state_->hash);
}

Kernel::~Kernel() = default;

void Kernel::update(std::span<const std::byte> elements) {
  if (elements.size() % state_->element_size != 0) {
    throw std::invalid_argument("a chunk must hold whole elements");
  }
  state_->n += elements.size() / state_->element_size;
  if (!state_->add_blocks) {
    state_->functions->hash(&state_->hash, elements.data(), elements.size());
    return;
  }
  const DefaultFloatEnvironment environment;
  while (!elements.empty()) {
    const auto chunk = elements.first(state_->next_chunk(elements.size()));
    state_->functions->hash(&state_->hash, chunk.data(), chunk.size());
    state_->add(chunk);
    elements = elements.subspan(chunk.size());
  }
}

TensorStats Kernel::finish() {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  TensorStats stats;
  stats.digest = {.high = hash.high64, .low = hash.low64};
  stats.n = state_->n;
  if (!state_->add_blocks) return stats;
  const DefaultFloatEnvironment environment;
  copy_norms(stats, state_->lanes);
  copy_extrema(stats, state_->lanes);
  copy_sketch(stats, state_->lanes);
  return stats;
}

TensorStats measure(DType dtype, std::span<const std::byte> elements, KernelMode mode) {
  Kernel kernel(dtype, mode);
  kernel.update(elements);
  return kernel.finish();
}

}  // namespace gradcheck
