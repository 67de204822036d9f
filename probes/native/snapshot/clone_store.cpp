// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/clone_store.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "evidence/write/safetensors.h"
#include "model/errors.h"
#include "probes/native/snapshot/tensor_bytes.h"

namespace gradcheck::native {
namespace {

std::string file_name(const Want& want, int rank) {
  std::string name = "payload/rank-" + std::to_string(rank) + ".step-" + std::to_string(want.step);
  if (want.micro > 0) name += ".micro-" + std::to_string(want.micro);
  return name + "." + std::string(name_of(want.stage)) + ".safetensors";
}

// Null for a name that none of them kept.
const at::Tensor* find(const std::vector<const CloneStore*>& stores, const Want& want,
                       const std::string& key) {
  for (const CloneStore* store : stores) {
    const auto& tensors = store->at(want.micro, want.stage);
    const auto found = tensors.find(key);
    if (found != tensors.end()) return &found->second;
  }
  return nullptr;
}

// What fits into the budget; names and bytes go into `record`.
std::vector<NamedTensor> choose(const std::vector<const CloneStore*>& stores, const Want& want,
                                PayloadRecord& record) {
  std::vector<NamedTensor> chosen;
  for (const std::string& key : want.names) {
    const at::Tensor* tensor = find(stores, want, key);
    if (tensor == nullptr) continue;
    if (record.bytes + tensor->nbytes() > want.budget_bytes) {
      record.truncated = true;
      break;  // most wanted first: nothing behind this one may overtake it
    }
    record.bytes += tensor->nbytes();
    record.names.push_back(key);
    chosen.push_back({key, dtype_of(*tensor), shape_of(*tensor), bytes_of(*tensor)});
  }
  return chosen;
}

}  // namespace

void CloneStore::keep(std::int64_t micro, Stage stage, const std::string& name, at::Tensor tensor) {
  moments_[{micro, stage}][name] = std::move(tensor);
}

const CloneStore::Tensors& CloneStore::at(std::int64_t micro, Stage stage) const {
  static const Tensors kNone;
  const auto found = moments_.find({micro, stage});
  return found == moments_.end() ? kNone : found->second;
}

at::Tensor CloneStore::space(std::int64_t micro, Stage stage, const std::string& name,
                             const at::Tensor& like) {
  at::Tensor& space = spaces_[{micro, stage}][name];
  const bool suits =
      space.defined() && space.scalar_type() == like.scalar_type() && space.sizes() == like.sizes();
  if (!suits) space = at::empty(like.sizes(), like.scalar_type());
  return space;
}

Payload write_payload(const std::vector<const CloneStore*>& stores, const Want& want,
                      const std::string& directory, int rank) {
  PayloadRecord record{want.step, want.micro, want.stage, file_name(want, rank), {}, 0, false};
  const std::vector<NamedTensor> chosen = choose(stores, want, record);
  const std::string path = directory + "/" + record.file;
  try {
    write_safetensors(path, chosen);
  } catch (const InfrastructureError& error) {
    std::error_code ignored;
    std::filesystem::remove(path + ".tmp", ignored);  // a full disk gets its space back
    return {{want.step, want.micro, want.stage, "", {}, 0, true}, error.what()};
  }
  return {std::move(record), ""};
}

}  // namespace gradcheck::native
