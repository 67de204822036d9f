// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/log_prob_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/probes/native/front_end.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

class LogProbFile : public OneThread {
 protected:
  LogProbFile() {
    run.rank = 1;
    run.directory = testing::TempDir() + "/log_prob_file";
    std::filesystem::create_directories(run.directory + "/payload");
  }
  ~LogProbFile() override { std::filesystem::remove_all(run.directory); }

  nlohmann::json recorded(std::int64_t updates = 0) {
    LogProbArrays arrays;
    arrays.fresh = at::full({2, 3}, -1.5, at::kBFloat16);
    arrays.old = at::full({2, 3}, -1.5);
    arrays.mask = at::full({2, 3}, true);
    arrays.token_ids = at::full({2, 3}, 7, at::kLong);
    record_log_probs(arrays, "native ppo", updates, run, front.journal());
    return front.lines().back();
  }

  FrontEnd front;
  RunRecord run;
};

TEST_F(LogProbFile, NamesFileKeysAndUpdates) {
  front.journal().move_to(2, 0);
  const nlohmann::json record = recorded(1);
  EXPECT_EQ(record["type"], "logprob");
  EXPECT_EQ(record["file"], "payload/logp-rank-1.step-2.policy.safetensors");
  EXPECT_EQ(record["keys"], nlohmann::json({"mask", "new", "old", "token_ids"}));
  EXPECT_EQ(record["updates"], 1);
  EXPECT_EQ(record["bytes"], 6 * (1 + 2 + 4 + 8));
  EXPECT_TRUE(std::filesystem::exists(run.directory + "/" + record["file"].get<std::string>()));
}

TEST_F(LogProbFile, NumbersFurtherMicroSteps) {
  front.journal().move_to(0, 1);
  EXPECT_EQ(recorded()["file"], "payload/logp-rank-1.step-0.policy.2.safetensors");
}

TEST_F(LogProbFile, SaysWhyNothingWasWritten) {
  std::filesystem::remove_all(run.directory);
  const nlohmann::json record = recorded();
  EXPECT_EQ(record["file"], "");
  EXPECT_THAT(record["text"].get<std::string>(), testing::HasSubstr("cannot write"));
}

}  // namespace
}  // namespace gradcheck::native
