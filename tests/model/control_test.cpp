// SPDX-License-Identifier: Apache-2.0
#include "model/json/control.h"

#include <gtest/gtest.h>

#include "model/errors.h"

namespace gradcheck {
namespace {

WrapperSpec unusual_wrapper() {
  WrapperOptions options;
  options.broadcast_buffers = false;
  options.find_unused_parameters = true;
  options.gradient_as_bucket_view = true;
  options.static_graph = true;
  options.no_sync = "all_but_last";
  options.hook = "sum";
  options.optimize_ddp = false;
  options.ignored = {"model.freqs_cos"};
  return {"ddp", options};
}

// No field has its default, so a field that is not carried shows.
NativeProgram unusual_program() {
  NativeProgram program;
  program.model = "qwen3_tiny_untied";
  program.trainer = "kto";
  program.loss = "dense";
  program.wrapper = unusual_wrapper();
  program.path = "unwrapped";
  program.backend = "nccl";
  program.dtype = "bf16";
  program.data = "same";
  program.loss_scale = 0.1;
  program.batch_size = 6;
  program.hidden_size = 64;
  program.vocab_size = 300;
  program.objectives = {{"kto", 0.5}, {"apo_zero_unpaired", 2}};
  program.labels = "one_sided";
  program.rewards = "equal";
  program.idle_expert = "always";
  program.touch_idle_expert = false;
  program.critic = Critic{"minimind_critic", "wrapped"};
  program.epochs = 2;
  program.count_items = true;
  program.clip_norm = 0.25;
  program.kl_limit = 0.125;
  program.grad_scale = 1024;
  program.label_smoothing = 0.1;
  program.desirable_weight = 1.0 / 3;
  program.undesirable_weight = 1e-300;
  program.fault = Fault{"skip_hook", 3, "backward", 2, "model.norm.weight"};
  return program;
}

RunRecord unusual_run() {
  RunRecord run;
  run.run = "r\"1\n";
  run.directory = "/tmp/ü x";
  run.rank = 3;
  run.world_size = 4;
  run.steps = 5;
  run.micro_steps = 6;
  run.seed = std::uint64_t{1} << 53;
  run.rendezvous_timeout_s = 1.5;
  run.collective_timeout_s = 2.5;
  run.program = unusual_program();
  return run;
}

template <typename Record>
Record there_and_back(const Record& record) {
  const std::string line = control_to_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return std::get<Record>(control_from_line(line));
}

TEST(Control, RunCarriesEveryFieldOfTheProgram) {
  EXPECT_EQ(there_and_back(unusual_run()).program, unusual_program());
}

TEST(Control, RunCarriesItsOwnFields) {
  const RunRecord run = there_and_back(unusual_run());
  EXPECT_EQ(run.run, "r\"1\n");
  EXPECT_EQ(run.directory, "/tmp/ü x");
  EXPECT_EQ(run.rank, 3);
  EXPECT_EQ(run.world_size, 4);
  EXPECT_EQ(run.steps, 5);
  EXPECT_EQ(run.micro_steps, 6);
  EXPECT_EQ(run.seed, std::uint64_t{1} << 53);
  EXPECT_EQ(run.rendezvous_timeout_s, 1.5);
  EXPECT_EQ(run.collective_timeout_s, 2.5);
}

TEST(Control, AProgramWithoutAFaultComesBackWithout) {
  RunRecord run = unusual_run();
  run.program.fault.reset();
  EXPECT_EQ(there_and_back(run).program, run.program);
}

TEST(Control, WantAndGoRoundTrip) {
  const Want want = there_and_back(Want{2, 3, Stage::local, {"policy/a", "policy/b"}, 1 << 20});
  EXPECT_EQ(want.step, 2);
  EXPECT_EQ(want.micro, 3);
  EXPECT_EQ(want.stage, Stage::local);
  EXPECT_EQ(want.names, (std::vector<std::string>{"policy/a", "policy/b"}));
  EXPECT_EQ(want.budget_bytes, 1u << 20);
  EXPECT_EQ(there_and_back(GoRecord{9}).step, 9);
}

TEST(Control, NonsenseIsAnInfrastructureError) {
  for (const char* line : {"", "{}", "[]", "3", "{\"type\":\"stop\"}", "{\"type\":\"go\"}",
                           "{\"type\":\"go\",\"step\":-1}", "{\"type\":\"go\",\"step\":0,\"x\":1}",
                           "{\"type\":\"go\",\"step\":0} {}", "{\"type\":7}"}) {
    EXPECT_THROW(control_from_line(line), InfrastructureError) << line;
  }
}

}  // namespace
}  // namespace gradcheck
