// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/session.h"

#include <algorithm>
#include <stdexcept>

#include "model/errors.h"
#include "probes/python/capture/json_check.h"
#include "probes/python/capture/merge.h"

namespace gradcheck::capture {
namespace {

constexpr std::size_t kMaxName = 2048;        // escaped sixfold, three of them fit into a line
constexpr std::size_t kRoomForSequence = 32;  // `"seq":` and its number

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

void check_name(std::string_view name, const char* what) {
  if (name.empty()) refuse(std::string("the ") + what + " is empty");
  if (name.size() > kMaxName) refuse(std::string("the ") + what + " is longer than 2,048 bytes");
}

void check_moment(const Moment& moment) {
  if (moment.step < 0 || moment.micro < 0) refuse("step or micro is negative");
}

// For messages: names come from the program under test and are cut.
std::string quoted(std::string_view name) { return "'" + std::string(name.substr(0, 100)) + "'"; }

KernelMode mode_of(Stage stage) {
  const bool full = stage == Stage::local || stage == Stage::reduced || stage == Stage::final;
  return full ? KernelMode::full : KernelMode::digest_only;
}

TensorStats digest_only(const TensorStats& stats) {
  TensorStats only;
  only.digest = stats.digest;
  only.n = stats.n;
  return only;
}

TensorState state_of_record(Presence presence, const TensorStats& stats) {
  if (presence == Presence::absent) return TensorState::absent;
  return presence == Presence::unreadable ? TensorState::unreadable : state_of(stats);
}

TensorRecord describe(const Form& form, Presence presence, const TensorStats& stats) {
  TensorRecord record;
  record.shape = form.shape;
  record.dtype = form.dtype;
  record.state = state_of_record(presence, stats);
  record.stats = stats;
  return record;
}

bool is_same(const std::optional<std::pair<Form, Digest>>& reduced, const Form& form,
             const Digest& digest) {
  return reduced && reduced->second == digest && reduced->first == form;
}

}  // namespace

Session::Session(int descriptor, double send_timeout_s)
    : channel_(std::make_unique<Channel>(descriptor, send_timeout_s)) {}

// Nobody will ask for what was kept.
void Session::close() {
  channel_.reset();
  copies_.clear();
  for (Slot& slot : slots_) slot.arrived.reset();
  pool_.set_budget(0);
}

template <typename Action>
auto Session::on_channel(Action action) {
  if (!is_open()) throw InfrastructureError("the channel is closed");
  try {
    return action(*channel_);
  } catch (...) {
    close();
    throw;
  }
}

void Session::send(std::string_view json) {
  if (json.size() + kRoomForSequence > kMaxLineBytes) refuse("the record is longer than 64 KiB");
  if (!is_json_object(json)) refuse("the record is not one JSON object on one line");
  json.remove_prefix(json.find('{'));
  on_channel([&](Channel& channel) { channel.send_object(json); });
}

void Session::flush() {
  on_channel([](Channel& channel) { channel.flush(); });
}

// Nothing may follow a bye, so nothing can.
void Session::bye(int status) {
  on_channel([&](Channel& channel) { channel.send_bye(status); });
  close();
}

std::optional<std::string> Session::receive(double timeout_s) {
  return on_channel([&](Channel& channel) { return channel.poll(timeout_s); });
}

std::size_t Session::model_index(std::string_view name) {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (models_[i].name == name) return i;
  }
  models_.push_back({std::string(name), {}});
  return models_.size() - 1;
}

std::int32_t Session::slot(std::string_view model, std::string_view name,
                           std::string_view tied_to) {
  check_name(model, "model");
  check_name(name, "name");
  if (!tied_to.empty()) check_name(tied_to, "owner's name");
  const std::size_t index = model_index(model);
  const auto next = static_cast<std::int32_t>(slots_.size());
  const auto [found, is_new] = slot_of_.try_emplace({index, std::string(name)}, next);
  if (is_new) {
    slots_.emplace_back();
    slots_.back().model = index;
    slots_.back().name = name;
  }
  slots_[static_cast<std::size_t>(found->second)].tied_to = tied_to;
  return found->second;
}

Slot& Session::slot_at(std::int32_t slot) {
  if (slot < 0 || static_cast<std::size_t>(slot) >= slots_.size()) {
    refuse("there is no slot " + std::to_string(slot));
  }
  return slots_[static_cast<std::size_t>(slot)];
}

// A second record of one moment would make the reader refuse all evidence of this run.
Slot& Session::slot_for(std::int32_t slot, const Moment& moment) {
  check_moment(moment);
  Slot& found = slot_at(slot);
  if (found.recorded[static_cast<std::size_t>(moment.stage)] == moment) {
    refuse(quoted(found.name) + " was recorded at this moment already");
  }
  return found;
}

Session::Sample Session::sample(const View& view, KernelMode mode, bool copy) {
  Sample sample;
  if (view.presence != Presence::readable) return sample;
  if (copy) sample.block = pool_.take(view.bytes);
  sample.stats = sample.block ? meter_.copy_and_measure(view, mode, sample.block->bytes())
                              : meter_.measure(view, mode);
  return sample;
}

void Session::local(std::int32_t slot, const View& gradient, bool copy) {
  Slot& receiver = slot_at(slot);
  if (gradient.presence == Presence::absent) return;
  Sample sample = this->sample(gradient, KernelMode::full, copy && !receiver.arrived);
  if (!receiver.arrived) {
    receiver.arrived = {gradient.presence, gradient.form, sample.stats, std::move(sample.block)};
    return;
  }
  Arrival& arrived = *receiver.arrived;
  arrived.block.reset();
  const bool adds_up = arrived.presence == Presence::readable &&
                       gradient.presence == Presence::readable && arrived.form == gradient.form;
  if (!adds_up) arrived.presence = Presence::unreadable;
  arrived.stats = merged(arrived.stats, sample.stats);
}

void Session::close_local(std::int64_t step, std::int64_t micro,
                          std::span<const std::int32_t> slots) {
  const Moment moment{step, micro, Stage::local};
  if (slots.empty()) refuse("there are no slots");
  const std::size_t model = slot_at(slots.front()).model;
  std::vector<bool> seen(slots_.size(), false);
  for (const std::int32_t slot : slots) {
    if (slot_for(slot, moment).model != model) refuse("the slots are of several models");
    if (seen[static_cast<std::size_t>(slot)]) refuse("a slot is there twice");
    seen[static_cast<std::size_t>(slot)] = true;
  }
  for (const std::int32_t slot : slots) write_local(slot, moment);
  write_mark(models_[model], moment);
}

void Session::drop_local(std::span<const std::int32_t> slots) {
  for (const std::int32_t slot : slots) slot_at(slot);
  for (const std::int32_t slot : slots) slot_at(slot).arrived.reset();
}

void Session::write_local(std::int32_t slot, const Moment& moment) {
  Slot& giver = slot_for(slot, moment);
  const std::optional<Arrival> arrived = std::exchange(giver.arrived, std::nullopt);
  if (arrived && arrived->block) {
    copies_.keep(moment, slot, {arrived->block, arrived->form, arrived->stats.digest});
  }
  TensorRecord record =
      arrived ? describe(arrived->form, arrived->presence, arrived->stats)
              : describe(giver.form.value_or(Form{}), Presence::absent, TensorStats{});
  record.kind = TensorKind::grad;
  write(giver, moment, std::move(record));
}

// What was reduced last is often what the optimizer takes. Then the digest says all, one cheap pass
// finds it, and the copy of the reduced gradient serves both stages. Where the last time was
// otherwise (clipped in every step) one full pass is cheaper than two.
Session::Sample Session::final_sample(std::int32_t slot, const Moment& moment, const View& view,
                                      bool copy) {
  Slot& taker = slot_at(slot);
  const Moment reduction{moment.step, moment.micro, Stage::reduced};
  const Copy* before = copies_.find(reduction, slot);
  const bool has_copy = before != nullptr && is_same(taker.reduced, before->form, before->digest);
  const bool may_be_same = taker.reduced && taker.reduced->first == view.form;
  if (may_be_same && !taker.final_differs && (has_copy || !copy)) {
    Sample same = sample(view, KernelMode::digest_only, false);
    if (is_same(taker.reduced, view.form, same.stats.digest)) {
      if (copy) same.block = before->block;
      return same;
    }
  }
  Sample full = sample(view, KernelMode::full, copy);
  taker.final_differs = !is_same(taker.reduced, view.form, full.stats.digest);
  if (!taker.final_differs) full.stats = digest_only(full.stats);
  return full;
}

Session::Sample Session::sample_for(std::int32_t slot, const Moment& moment, const View& view,
                                    bool copy) {
  if (view.presence != Presence::readable) return {};
  if (moment.stage == Stage::final) return final_sample(slot, moment, view, copy);
  return sample(view, mode_of(moment.stage), copy);
}

void Session::record(std::int32_t slot, const Moment& moment, TensorKind kind, const View& tensor,
                     std::optional<bool> requires_grad, bool copy) {
  Slot& taker = slot_for(slot, moment);
  if (moment.stage == Stage::local) refuse("local gradients go through gradcheck_local");
  const Sample sample = sample_for(slot, moment, tensor, copy);
  const bool is_absent = tensor.presence == Presence::absent;
  if (!is_absent || !taker.form) taker.form = tensor.form;
  if (moment.stage == Stage::reduced) {
    taker.reduced.reset();
    if (tensor.presence == Presence::readable) taker.reduced = {tensor.form, sample.stats.digest};
  }
  if (sample.block) copies_.keep(moment, slot, {sample.block, tensor.form, sample.stats.digest});
  TensorRecord record = describe(*taker.form, tensor.presence, sample.stats);
  record.kind = kind;
  record.requires_grad = requires_grad;
  write(taker, moment, std::move(record));
}

void Session::write(Slot& slot, const Moment& moment, TensorRecord record) {
  Model& model = models_[slot.model];
  record.step = moment.step;
  record.micro = moment.micro;
  record.stage = moment.stage;
  record.model = model.name;
  record.name = slot.name;
  record.tied_to = slot.tied_to;
  on_channel([&](Channel& channel) { channel.send(record); });
  slot.recorded[static_cast<std::size_t>(moment.stage)] = moment;
  ++model.records[moment];
}

void Session::mark(std::string_view model, const Moment& moment) {
  check_name(model, "model");
  check_moment(moment);
  write_mark(models_[model_index(model)], moment);
}

// Counts of earlier steps are not needed any more, also where their stage was never closed.
void Session::write_mark(Model& model, const Moment& moment) {
  const auto found = model.records.find(moment);
  const std::uint64_t count = found == model.records.end() ? 0 : found->second;
  std::erase_if(model.records, [&](const auto& entry) { return entry.first.step < moment.step; });
  on_channel([&](Channel& channel) {
    channel.send(MarkRecord{moment.step, moment.micro, moment.stage, model.name, count});
  });
}

Digest Session::digest(const View& tensor) {
  if (tensor.presence != Presence::readable) refuse("there are no elements to read");
  return meter_.measure(tensor, KernelMode::digest_only).digest;
}

bool Session::is_zero(const View& tensor) {
  if (tensor.presence != Presence::readable) refuse("there are no elements to read");
  if (!is_measured(tensor.form.dtype)) refuse("only f64, f32, f16 and bf16 are looked through");
  return meter_.is_zero(tensor);
}

}  // namespace gradcheck::capture
