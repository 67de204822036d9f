// SPDX-License-Identifier: Apache-2.0
#include "probes/native/rank_main.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <variant>

#include "evidence/write/channel.h"
#include "model/control.h"
#include "model/errors.h"
#include "model/json/control.h"
#include "numeric/kernel.h"
#include "probes/native/journal.h"
#include "probes/native/training_run.h"
#include "probes/native/versions.h"

namespace gradcheck::native {
namespace {

constexpr double kRunTimeout = 60;
constexpr std::size_t kMaxText = 4096;

// Variables that can change what a run computes or how its ranks meet.
constexpr std::array kEnvironment = {
    "OMP_NUM_THREADS",        "MKL_NUM_THREADS",    "MKL_CBWR",
    "ATEN_CPU_CAPABILITY",    "GLOO_SOCKET_IFNAME", "TORCH_GLOO_LAZY_INIT",
    "TORCH_DISTRIBUTED_DEBUG"};

std::optional<RunRecord> receive_run(Channel& channel) {
  const auto line = channel.receive(kRunTimeout);
  if (!line) return std::nullopt;
  ControlRecord control = control_from_line(*line);
  if (auto* run = std::get_if<RunRecord>(&control)) return std::move(*run);
  throw InfrastructureError("native rank: the front's first record is not `run`");
}

// Ranks that met through the same store, in a world of the same size, are one world.
std::string world_of(const RunRecord& run) {
  const std::string key = run.directory + "/store:" + std::to_string(run.world_size);
  const auto bytes = std::as_bytes(std::span(key));
  return to_hex(measure(DType::u8, bytes, KernelMode::digest_only).digest);
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

HelloRecord hello(const RunRecord& run) {
  HelloRecord record;
  record.run = run.run;
  record.world = world_of(run);
  record.rank = run.rank;
  record.local_rank = run.rank;
  record.world_size = run.world_size;
  record.host = host_name();
  record.pid = getpid();
  record.producer = "native";
  record.backend = run.program.backend;
  record.device = "cpu";
  record.seed = run.seed;
  record.versions = versions();
  for (const char* name : kEnvironment) {
    if (const char* value = std::getenv(name)) record.env.emplace_back(name, value);
  }
  return record;
}

std::string type_name(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : typeid(error).name();
}

std::string text_of(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = from_torch ? from_torch->what_without_backtrace() : error.what();
  if (text.size() > kMaxText) text.resize(kMaxText);
  return text;
}

void report(Channel& channel, Journal& journal, const std::exception& error) {
  EventRecord event;
  event.type = EventType::exception;
  event.error_type = type_name(error);
  event.text = text_of(error);
  event.phase = journal.phase();
  journal.event(std::move(event));
  channel.send_bye(1);
}

int train(const RunRecord& run, Channel& channel) {
  Journal journal(channel);
  channel.send(hello(run));
  // Leaked: what it owns must outlive this function, see rank_main.h.
  auto* training = new TrainingRun(run, channel, journal);
  try {
    training->run();
  } catch (const InfrastructureError&) {
    throw;
  } catch (const std::exception& error) {
    report(channel, journal, error);
    return 1;
  }
  channel.send_bye(0);
  return 0;
}

}  // namespace

int rank_main(int channel_descriptor) {
  Channel channel(channel_descriptor);
  const auto run = receive_run(channel);
  return run ? train(*run, channel) : 0;
}

}  // namespace gradcheck::native
