// SPDX-License-Identifier: Apache-2.0
// The fused pass against what bounds it (memcpy, XXH3 alone) and what it replaces (SHA-1), each
// over one 64 MiB buffer, far larger than the caches, on one core. bench/ratios.py reads the names.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "numeric/kernel.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcheck {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;

template <class T>
void fill_with(std::vector<std::byte>& buffer, T (*element)(std::uint32_t random)) {
  std::uint32_t random = 1;
  for (std::size_t at = 0; at < buffer.size(); at += sizeof(T)) {
    random = random * 1664525 + 1013904223;
    const T value = element(random);
    std::memcpy(buffer.data() + at, &value, sizeof value);
  }
}

// Finite values around 1, as gradients are but for their scale.
std::vector<std::byte> tensor(DType dtype) {
  std::vector<std::byte> buffer(kBytes);
  if (dtype == DType::f64) {
    fill_with<double>(buffer, [](std::uint32_t random) { return random * 0x1p-31 - 1; });
  } else if (dtype == DType::f32) {
    fill_with<float>(buffer, [](std::uint32_t random) { return float(random * 0x1p-31 - 1); });
  } else {
    fill_with<std::uint16_t>(buffer, [](std::uint32_t random) {
      return static_cast<std::uint16_t>((random >> 16 & 0x83ff) | 0x3800);
    });
  }
  return buffer;
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes));
}

void copy(benchmark::State& state) {
  const auto from = tensor(DType::f32);
  std::vector<std::byte> to(kBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

void xxh3(benchmark::State& state) {
  const auto buffer = tensor(DType::f32);
  for (auto _ : state) benchmark::DoNotOptimize(XXH3_128bits(buffer.data(), buffer.size()));
  count_bytes(state);
}

void sha1(benchmark::State& state) {
  const auto buffer = tensor(DType::f32);
  unsigned char digest[EVP_MAX_MD_SIZE];
  for (auto _ : state) {
    EVP_Digest(buffer.data(), buffer.size(), digest, nullptr, EVP_sha1(), nullptr);
    benchmark::DoNotOptimize(digest);
  }
  count_bytes(state);
}

void kernel(benchmark::State& state, DType dtype, KernelMode mode, Isa isa) {
  const auto buffer = tensor(dtype);
  for (auto _ : state) {
    Kernel pass(dtype, mode, 0, isa);
    pass.update(buffer);
    benchmark::DoNotOptimize(pass.finish());
  }
  count_bytes(state);
}

void register_kernels(Isa isa) {
  const std::string of_isa(name_of(isa));
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const std::string name = "kernel/" + std::string(name_of(dtype)) + "/" + of_isa;
    benchmark::RegisterBenchmark(name.c_str(), kernel, dtype, KernelMode::full, isa);
  }
  const std::string name = "kernel/digest_only/" + of_isa;
  benchmark::RegisterBenchmark(name.c_str(), kernel, DType::f32, KernelMode::digest_only, isa);
}

}  // namespace
}  // namespace gradcheck

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("memcpy", gradcheck::copy);
  benchmark::RegisterBenchmark("xxh3", gradcheck::xxh3);
  benchmark::RegisterBenchmark("sha1", gradcheck::sha1);
  for (const gradcheck::Isa isa : gradcheck::available_isas()) gradcheck::register_kernels(isa);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
