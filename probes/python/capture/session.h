// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/write/channel.h"
#include "evidence/write/safetensors.h"
#include "model/record.h"
#include "probes/python/capture/copies.h"
#include "probes/python/capture/measure.h"
#include "probes/python/capture/slot.h"
#include "probes/python/capture/view.h"

namespace gradcheck::capture {

// What a payload file is to hold.
struct PayloadRequest {
  std::string path;
  Moment moment;
  std::span<const std::int32_t> slots;  // most wanted first
  std::uint64_t budget_bytes = 0;
};

// One array of a file, under its key there.
struct NamedView {
  std::string key;
  View view;
};

// Writes a safetensors file; leaves nothing behind where that fails.
// Errors: InfrastructureError.
void write_or_remove(const std::string& path, std::span<const NamedTensor> tensors);

// A rank's evidence on its way to the front: what stands behind a handle of capture.h, where each
// function is described. One thread at a time.
// Errors: std::invalid_argument for what the caller got wrong, with nothing changed;
// InfrastructureError otherwise. After a failed send or bye() the session is closed for good.
class Session {
 public:
  Session(int descriptor, double send_timeout_s);

  bool is_open() const { return channel_ != nullptr; }
  void close();  // sends nothing

  void send(std::string_view json);
  void flush();
  void bye(int status);
  std::optional<std::string> receive(double timeout_s);

  std::int32_t slot(std::string_view model, std::string_view name, std::string_view tied_to);
  void local(std::int32_t slot, const View& gradient, bool copy);
  void close_local(std::int64_t step, std::int64_t micro, std::span<const std::int32_t> slots);
  void drop_local(std::span<const std::int32_t> slots);
  void record(std::int32_t slot, const Moment& moment, TensorKind kind, const View& tensor,
              std::optional<bool> requires_grad, bool copy);
  void mark(std::string_view model, const Moment& moment);

  void set_budget(std::uint64_t bytes) { pool_.set_budget(bytes); }
  void forget_before(std::int64_t step) { copies_.forget_before(step); }
  // `written` has an entry a slot. The number of slots in the file.
  std::int32_t payload(const PayloadRequest& request, std::span<std::uint8_t> written);

  // Writes a file of these arrays; the digest of them all.
  Digest arrays(const std::string& path, std::span<const NamedView> arrays);

  Digest digest(const View& tensor);
  bool is_zero(const View& tensor);

 private:
  struct Sample {
    TensorStats stats;
    std::shared_ptr<const Pool::Block> block;  // null: not kept
  };

  template <typename Action>
  auto on_channel(Action action);
  std::size_t model_index(std::string_view name);
  Slot& slot_at(std::int32_t slot);
  Slot& slot_for(std::int32_t slot, const Moment& moment);
  Sample sample(const View& view, KernelMode mode, bool copy);
  Sample final_sample(std::int32_t slot, const Moment& moment, const View& view, bool copy);
  Sample sample_for(std::int32_t slot, const Moment& moment, const View& view, bool copy);
  void write(Slot& slot, const Moment& moment, TensorRecord record);
  void write_local(std::int32_t slot, const Moment& moment);
  void write_mark(Model& model, const Moment& moment);

  Pool pool_;  // before all that holds blocks
  Copies copies_;
  std::vector<Slot> slots_;
  std::map<std::pair<std::size_t, std::string>, std::int32_t> slot_of_;  // model, name
  std::vector<Model> models_;
  Meter meter_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace gradcheck::capture
