// SPDX-License-Identifier: Apache-2.0
#include "probes/native/training_run.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "model/errors.h"
#include "model/json/control.h"
#include "model/native_fit.h"

namespace gradcheck::native {
namespace {

// The front answers `step_done` when all ranks have sent theirs; its own deadlines end a run that
// stalls, so this one only has to be longer.
constexpr double kFrontTimeout = 3600;

// Scenario files are held to the same rules; a program may come from elsewhere.
void check_combination(const NativeProgram& program) {
  const std::string problem = misfit_of(program);
  if (!problem.empty()) throw std::invalid_argument(problem);
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
    double recording = 0;
    for (const auto& trainee : trainees_) recording += trainee->recorder().seconds();
    std::fprintf(stderr, "timing: recording %.6f s, steps %.6f s\n", recording, watch_.seconds());
  }
}

void TrainingRun::rendezvous() {
  journal_.enter("rendezvous");
  faults_.strike("rendezvous", 0);
  check_combination(run_.program);  // on every rank before any of them waits for another
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
  const NativeProgram& program = run_.program;
  add_trainee(program.trainer == "critic" ? kCritic : kPolicy, program.model, program.path);
  if (program.critic) add_trainee(kCritic, program.critic->model, program.critic->path);
  Policy* critic = trainees_.size() > 1 ? &trainees_[1]->policy() : nullptr;
  trainer_ = make_trainer({run_, journal_, trainees_[0]->policy(), critic, fabric_.get()});
}

void TrainingRun::add_trainee(const std::string& name, const std::string& model,
                              const std::string& path) {
  RunRecord run = run_;
  run.program.model = model;
  run.program.path = path;
  trainees_.push_back(std::make_unique<Trainee>(name, run, fabric_.get(), journal_, faults_));
}

void TrainingRun::step(std::int64_t step) {
  {
    const auto time = watch_.run();
    journal_.move_to(step, 0);
    for (const auto& trainee : trainees_) trainee->start_step(step);
    const std::int64_t micro_steps = micro_steps_of(step);
    for (std::int64_t micro = 0; micro < micro_steps; ++micro) micro_step(step, micro);
    optimize();
  }
  serve_front();
}

// What is left over at the end of an epoch makes a shorter last step. Losses are divided as if it
// were a whole one, as minimind's scripts do.
std::int64_t TrainingRun::micro_steps_of(std::int64_t step) const {
  const std::int64_t remainder = run_.program.remainder;
  return remainder > 0 && step + 1 == run_.steps ? remainder : run_.micro_steps;
}

bool TrainingRun::runs_unsynchronised(std::int64_t micro) const {
  const std::string& policy = run_.program.wrapper.options.no_sync;
  if (policy == "all_but_whole") return micro + 1 < run_.micro_steps;
  return policy == "all" ||
         (policy == "all_but_last" && micro + 1 < micro_steps_of(journal_.step()));
}

void TrainingRun::micro_step(std::int64_t step, std::int64_t micro) {
  journal_.move_to(step, micro);
  for (const auto& trainee : trainees_) {
    Wrapper* wrapper = trainee->policy().wrapper();
    if (wrapper) wrapper->set_no_sync(runs_unsynchronised(micro));
  }
  const at::Tensor loss = trainer_(step, micro);
  double scale = run_.program.loss_scale / static_cast<double>(run_.micro_steps);
  if (run_.program.grad_scale > 0) scale *= run_.program.grad_scale;
  if (faults_.overflows(step)) scale = std::numeric_limits<double>::infinity();
  backward(loss * scale);
  for (const auto& trainee : trainees_) {
    trainee->recorder().record_local();
    trainee->recorder().record_reduced();
  }
}

void TrainingRun::backward(const at::Tensor& loss) {
  journal_.enter("backward");
  for (const auto& trainee : trainees_) trainee->before_backward();
  loss.backward();
  for (const auto& trainee : trainees_) trainee->after_backward();
}

void TrainingRun::optimize() {
  journal_.enter("optimizer");
  faults_.strike("optimizer", journal_.step());
  for (const auto& trainee : trainees_) trainee->optimize(run_.program);
}

// The only wait for the front.
void TrainingRun::serve_front() {
  EventRecord done;
  done.type = EventType::step_done;
  done.model = kPolicy;
  journal_.event(std::move(done));
  while (const std::optional<Want> want = next_want()) answer(*want);
  for (const auto& trainee : trainees_) trainee->recorder().forget();
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
  std::vector<const CloneStore*> stores;
  for (const auto& trainee : trainees_) stores.push_back(&trainee->recorder().clones());
  Payload payload = write_payload(stores, want, run_.directory, run_.rank);
  if (!payload.problem.empty()) {
    EventRecord note;
    note.text = std::move(payload.problem);
    journal_.event(std::move(note));
  }
  journal_.send(payload.record);
}

}  // namespace gradcheck::native
