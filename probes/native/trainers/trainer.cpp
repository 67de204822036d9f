// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/trainer.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "probes/native/trainers/kto_trainer.h"

namespace gradcheck::native {
namespace {

struct TrainerRow {
  std::string_view name;
  MicroLoss (*make)(const Bench&);
};

constexpr std::array<TrainerRow, 1> kTrainers = {{{"kto", make_kto}}};

}  // namespace

MicroLoss make_trainer(const Bench& bench) {
  for (const TrainerRow& row : kTrainers) {
    if (row.name == bench.run.program.trainer) return row.make(bench);
  }
  throw std::invalid_argument("unknown trainer " + bench.run.program.trainer);
}

}  // namespace gradcheck::native
