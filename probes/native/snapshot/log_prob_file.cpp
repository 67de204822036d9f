// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/log_prob_file.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "evidence/write/safetensors.h"
#include "model/errors.h"
#include "numeric/array_digest.h"
#include "numeric/kernel.h"
#include "probes/native/snapshot/tensor_bytes.h"

namespace gradcheck::native {
namespace {

std::string file_name(const LogProbRecord& record, int rank) {
  const std::string further = record.micro > 0 ? "." + std::to_string(record.micro + 1) : "";
  return "payload/logp-rank-" + std::to_string(rank) + ".step-" + std::to_string(record.step) +
         "." + record.name + further + ".safetensors";
}

using NamedArray = std::pair<const char*, at::Tensor>;

std::vector<NamedArray> named(const LogProbArrays& arrays) {
  std::vector<NamedArray> list;
  const auto add = [&](const char* key, const at::Tensor& array) {
    if (array.defined()) list.emplace_back(key, row_major(array));
  };
  add("entropy", arrays.entropy);
  add("mask", arrays.mask.to(at::kByte));
  add("new", arrays.fresh);
  add("new_repeat", arrays.repeat);
  add("old", arrays.old);
  add("ref", arrays.reference);
  add("rollout", arrays.sampled);
  add("token_ids", arrays.token_ids);
  return list;
}

void describe(const std::vector<NamedArray>& arrays, LogProbRecord& record) {
  std::vector<ArrayStamp> stamps;
  for (const auto& [key, array] : arrays) {
    const DType dtype = dtype_of(array);
    const Digest digest = measure(dtype, bytes_of(array), KernelMode::digest_only).digest;
    stamps.push_back({key, dtype, shape_of(array), digest});
    record.keys.emplace_back(key);
    record.bytes += array.nbytes();
  }
  record.digest = to_hex(digest_of(stamps));
}

// A rank that cannot write says so: the front then knows that nothing is known.
void write(const std::vector<NamedArray>& arrays, const std::string& directory,
           LogProbRecord& record) {
  std::vector<NamedTensor> tensors;
  for (const auto& [key, array] : arrays) {
    tensors.push_back({key, dtype_of(array), shape_of(array), bytes_of(array)});
  }
  const std::string path = directory + "/" + record.file;
  try {
    write_safetensors(path, tensors);
  } catch (const InfrastructureError& error) {
    std::error_code ignored;
    std::filesystem::remove(path + ".tmp", ignored);
    record.file.clear();
    record.keys.clear();
    record.bytes = 0;
    record.digest.clear();
    record.text = error.what();
  }
}

}  // namespace

void record_log_probs(const LogProbArrays& arrays, const std::string& source, std::int64_t updates,
                      const RunRecord& run, Journal& journal) {
  const at::NoGradGuard no_grad;
  LogProbRecord record;
  record.step = journal.step();
  record.micro = journal.micro();
  record.name = kPolicy;
  record.source = source;
  record.updates = updates;
  record.file = file_name(record, run.rank);
  const std::vector<NamedArray> list = named(arrays);
  describe(list, record);
  write(list, run.directory, record);
  journal.send(record);
}

}  // namespace gradcheck::native
