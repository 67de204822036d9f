// SPDX-License-Identifier: Apache-2.0
#include "probes/native/training_run.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "model/errors.h"
#include "model/json/control.h"
#include "probes/native/models/model_table.h"

namespace gradcheck::native {
namespace {

// The front answers `step_done` when all ranks have sent theirs; its own deadlines end a run that
// stalls, so this one only has to be longer.
constexpr double kFrontTimeout = 3600;

std::string site(std::source_location where = std::source_location::current()) {
  const std::string_view path = where.file_name();
  const auto start = path.rfind("probes/native");
  return std::string(path.substr(start == path.npos ? 0 : start)) + ":" +
         std::to_string(where.line());
}

EventRecord policy_event(EventType type) {
  EventRecord event;
  event.type = type;
  event.model = kPolicy;
  return event;
}

}  // namespace

TrainingRun::TrainingRun(RunRecord run, Channel& channel, Journal& journal)
    : run_(std::move(run)),
      channel_(channel),
      journal_(journal),
      faults_(run_.program.fault, run_.rank) {}

void TrainingRun::run() {
  rendezvous();
  construct();
  for (std::int64_t step = 0; step < run_.steps; ++step) this->step(step);
  journal_.enter("finished");
  if (std::getenv("GRADCHECK_TIMING") != nullptr) {  // read by bench/recording_bench.py
    std::fprintf(stderr, "timing: recording %.6f s, steps %.6f s\n", recorder_->seconds(),
                 watch_.seconds());
  }
}

void TrainingRun::rendezvous() {
  journal_.enter("rendezvous");
  faults_.strike("rendezvous", 0);
  if (run_.program.backend != "gloo") {
    throw std::invalid_argument("backend " + run_.program.backend +
                                " is not in this LibTorch; the lab runs on gloo");
  }
  const bool alone = run_.world_size == 1 && run_.program.wrapper.kind == "none";
  if (!alone) fabric_ = std::make_unique<Fabric>(run_, journal_, faults_);
}

void TrainingRun::construct() {
  journal_.enter("construct");
  faults_.strike("construct", 0);
  Qwen3 model = make_model(run_.program, run_.seed);
  check_target(run_.program.fault, model.parameters());
  std::unique_ptr<Ddp> wrapper;
  if (run_.program.wrapper.kind == "ddp") {
    wrapper = std::make_unique<Ddp>(model.parameters(), model.buffers(), *fabric_,
                                    run_.program.wrapper.options, journal_);
  }
  policy_ = std::make_unique<Policy>(std::move(model), std::move(wrapper), run_.program, journal_);
  policy_->on_enter([this] { on_inner_forward(); });
  trainer_ = make_trainer({run_, journal_, *policy_, fabric_.get()});
  const ModelTensors& parameters = policy_->model().parameters();
  recorder_ = std::make_unique<Recorder>(parameters, policy_->model().buffers(), journal_, faults_);
  optimizer_ = std::make_unique<AdamW>(parameters);
  if (faults_.strikes_in("backward")) {  // in the midst of a backward, not before it
    parameters[parameters.size() / 2].value.register_hook(
        [this](const at::Tensor&) { faults_.strike("backward", journal_.step()); });
  }
}

void TrainingRun::on_inner_forward() {
  if (journal_.step() > buffers_seen_in_step_) {
    buffers_seen_in_step_ = journal_.step();
    recorder_->record_next_forward();
  }
  if (at::GradMode::is_enabled()) faults_.strike("forward", journal_.step());
}

void TrainingRun::step(std::int64_t step) {
  {
    const auto time = watch_.run();
    journal_.move_to(step, 0);
    if (step == 0) recorder_->record_start();
    for (std::int64_t micro = 0; micro < run_.micro_steps; ++micro) micro_step(step, micro);
    optimize();
  }
  serve_front();
}

bool TrainingRun::runs_unsynchronised(std::int64_t micro) const {
  const std::string& policy = run_.program.wrapper.options.no_sync;
  return policy == "all" || (policy == "all_but_last" && micro + 1 < run_.micro_steps);
}

void TrainingRun::micro_step(std::int64_t step, std::int64_t micro) {
  journal_.move_to(step, micro);
  if (policy_->wrapper()) policy_->wrapper()->set_no_sync(runs_unsynchronised(micro));
  const at::Tensor loss = trainer_(step, micro);
  backward(loss * (run_.program.loss_scale / static_cast<double>(run_.micro_steps)));
  recorder_->record_local();
  recorder_->record_reduced();
}

void TrainingRun::backward(const at::Tensor& loss) {
  journal_.enter("backward");
  Ddp* wrapper = policy_->wrapper();
  const bool armed = wrapper && wrapper->armed();
  EventRecord event = policy_event(EventType::backward);
  event.site = site();
  if (wrapper) {
    event.armed = armed;
    event.no_sync = wrapper->no_sync();
  }
  journal_.event(std::move(event));
  loss.backward();
  if (wrapper) wrapper->finish_backward(armed);
}

void TrainingRun::optimize() {
  journal_.enter("optimizer");
  faults_.strike("optimizer", journal_.step());
  recorder_->record_final();
  optimizer_->step();
  EventRecord event = policy_event(EventType::optimizer_step);
  event.optimizer = "AdamW";
  journal_.event(std::move(event));
  recorder_->record_after();
  optimizer_->clear_gradients();
  journal_.event(policy_event(EventType::grad_cleared));
}

// The only wait for the front.
void TrainingRun::serve_front() {
  journal_.event(policy_event(EventType::step_done));
  while (const std::optional<Want> want = next_want()) answer(*want);
  recorder_->forget();
}

// nullopt is `go`, which ends the step.
std::optional<Want> TrainingRun::next_want() {
  const std::optional<std::string> line = channel_.receive(kFrontTimeout);
  if (!line) throw InfrastructureError("native rank: the front closed the channel");
  ControlRecord control = control_from_line(*line);
  if (std::holds_alternative<GoRecord>(control)) return std::nullopt;
  if (auto* want = std::get_if<Want>(&control)) return std::move(*want);
  throw InfrastructureError("native rank: the front sent `run` twice");
}

void TrainingRun::answer(const Want& want) {
  Payload payload = write_payload(recorder_->clones(), want, run_.directory, run_.rank);
  if (!payload.problem.empty()) {
    EventRecord note;
    note.text = std::move(payload.problem);
    journal_.event(std::move(note));
  }
  journal_.send(payload.record);
}

}  // namespace gradcheck::native
