// SPDX-License-Identifier: Apache-2.0
#include "run/job_worlds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gradcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class JobWorldsTest : public testing::Test {
 protected:
  static std::string hello(int rank, int size, const std::string& world = "w", int restart = 0) {
    return fmt::format(
        R"({{"type":"hello","seq":0,"schema":"evidence-1","run":"r","world":"{}","role":"trainer",)"
        R"("rank":{},"restart":{},"world_size":{},"local_rank":{},"host":"h","pid":{},)"
        R"("producer":"python","backend":"gloo","device":"cpu","seed":0,"versions":[],"env":[]}})",
        world, rank, restart, size, rank, 100 + rank);
  }
  static std::string mark(int sequence) {
    return fmt::format(
        R"({{"type":"mark","seq":{},"step":0,"micro":0,"stage":"after","model":"m","tensors":0}})",
        sequence);
  }
  static std::string at_exit(int sequence) {
    return fmt::format(R"({{"type":"event","seq":{},"event":"phase","step":0,"micro":0,)"
                       R"("phase":"exit"}})",
                       sequence);
  }

  std::vector<std::string> sent_;
  JobWorlds worlds_{{"r", 1 << 20, false}, [this](int connection, const std::string& line) {
                      sent_.push_back(std::to_string(connection) + ":" + line);
                    }};
};

TEST_F(JobWorldsTest, KeepsWorldsApart) {
  worlds_.take_line(0, hello(0, 2, "actor"));
  worlds_.take_line(1, hello(1, 2, "actor"));
  worlds_.take_line(2, hello(0, 1, "critic"));
  EXPECT_THAT(worlds_.worlds(), SizeIs(2));
  EXPECT_THAT(worlds_.problems(), IsEmpty());
}

TEST_F(JobWorldsTest, TwoProcessesThatCallThemselvesTheSameRankAreAProblem) {
  worlds_.take_line(0, hello(1, 2));
  worlds_.take_line(1, hello(1, 2));
  EXPECT_THAT(worlds_.problems(), ElementsAre(HasSubstr("rank 1 of 2 announced itself twice")));
}

TEST_F(JobWorldsTest, RefusesImpossibleRanksSizesAndNonsense) {
  worlds_.take_line(0, hello(2, 2));
  worlds_.take_line(1, hello(0, 2'000'000));
  worlds_.take_line(2, "GET / HTTP/1.1");
  worlds_.take_line(3, hello(0, 2));
  worlds_.take_line(4, hello(1, 3));
  EXPECT_THAT(worlds_.problems(), SizeIs(4));
  EXPECT_THAT(worlds_.worlds(), SizeIs(1));
}

TEST_F(JobWorldsTest, TheNewestRestartCounts) {
  worlds_.take_line(0, hello(0, 2));
  worlds_.take_line(0, mark(1));
  worlds_.take_line(1, hello(0, 2, "w", 1));
  worlds_.take_line(2, hello(1, 2, "w", 0));  // late, of the attempt before
  ASSERT_THAT(worlds_.worlds(), SizeIs(1));
  EXPECT_EQ(worlds_.worlds()[0]->restart, 1);
  EXPECT_THAT(worlds_.worlds()[0]->reader.table().rank(0).marks, IsEmpty());
  EXPECT_THAT(worlds_.notes(), ElementsAre(HasSubstr("restart 0 was replaced")));
}

TEST_F(JobWorldsTest, ARankAtItsEndIsLetGoOnceItsStepsAreSettled) {
  for (int rank = 0; rank < 2; ++rank) worlds_.take_line(rank, hello(rank, 2));
  worlds_.take_line(0, mark(1));
  worlds_.take_line(0, at_exit(2));
  EXPECT_THAT(sent_, IsEmpty()) << "rank 1 may still come to the step";
  worlds_.take_line(1, mark(1));
  EXPECT_THAT(sent_, ElementsAre(HasSubstr("0:")));
  EXPECT_THAT(sent_.front(), HasSubstr("go"));
}

TEST_F(JobWorldsTest, WithExactARankGoesOnOnceEveryRankCameToItsStep) {
  JobWorlds exact({"r", 1 << 20, true}, [this](int connection, const std::string& line) {
    sent_.push_back(std::to_string(connection) + ":" + line);
  });
  for (int rank = 0; rank < 2; ++rank) exact.take_line(rank, hello(rank, 2));
  exact.take_line(0, mark(1));
  EXPECT_THAT(sent_, IsEmpty());
  exact.take_line(1, mark(1));
  EXPECT_THAT(sent_, ElementsAre(HasSubstr("0:"), HasSubstr("1:")));
  EXPECT_THAT(sent_.back(), HasSubstr("go"));
  exact.take_line(1, mark(2));
  EXPECT_THAT(sent_, SizeIs(2)) << "once a step";
}

TEST_F(JobWorldsTest, ARankThatDiedKeepsNobodyWaiting) {
  for (int rank = 0; rank < 2; ++rank) worlds_.take_line(rank, hello(rank, 2));
  worlds_.take_line(0, mark(1));
  worlds_.take_line(0, at_exit(2));
  worlds_.take_close(1, "");
  EXPECT_THAT(sent_, SizeIs(1));
  EXPECT_EQ(worlds_.worlds()[0]->ranks[1].end_order, 1);
}

TEST_F(JobWorldsTest, WordsAfterARefusalAreIgnored) {
  worlds_.take_line(0, "nonsense");
  worlds_.take_line(0, hello(0, 2));
  EXPECT_THAT(worlds_.worlds(), IsEmpty());
}

}  // namespace
}  // namespace gradcheck
