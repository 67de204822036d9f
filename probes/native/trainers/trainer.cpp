// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/trainer.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "probes/native/trainers/critic_trainer.h"
#include "probes/native/trainers/distillation_trainer.h"
#include "probes/native/trainers/dpo_trainer.h"
#include "probes/native/trainers/grpo_trainer.h"
#include "probes/native/trainers/kto_trainer.h"
#include "probes/native/trainers/ppo_trainer.h"
#include "probes/native/trainers/sft_trainer.h"

namespace gradcheck::native {
namespace {

struct TrainerRow {
  std::string_view name;
  MicroLoss (*make)(const Bench&);
};

constexpr std::array<TrainerRow, 9> kTrainers = {{
    {"kto", make_kto},
    {"dpo", make_dpo},
    {"critic", make_critic},
    {"sft", make_sft},
    {"grpo", make_grpo},
    {"agent", make_agent},
    {"ppo", make_ppo},
    {"distillation", make_distillation},
    {"gkd", make_gkd},
}};

}  // namespace

MicroLoss make_trainer(const Bench& bench) {
  for (const TrainerRow& row : kTrainers) {
    if (row.name == bench.run.program.trainer) return row.make(bench);
  }
  throw std::invalid_argument("unknown trainer " + bench.run.program.trainer);
}

}  // namespace gradcheck::native
