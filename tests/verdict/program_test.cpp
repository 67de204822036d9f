// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/verdict/made_up.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

constexpr const char* kPeerGone = "[pair.cc:534] Connection closed by peer [127.0.0.1]:44013";

void raise(EvidenceTable& table, int rank, const std::string& text) {
  EventRecord event;
  event.type = EventType::exception;
  event.error_type = "RuntimeError";
  event.text = text;
  event.phase = "backward";
  table.rank(rank).events.push_back(event);
  table.rank(rank).end = RankEnd::exited;
  table.rank(rank).exit_status = 1;
}

// Two steps were asked for, all evidence of the last stage is missing on one rank.
Recipe cut_short(std::function<void(EvidenceTable&)> edit, int rank = 1) {
  Recipe recipe;
  recipe.marked = [rank](const At& at, Stage stage) {
    return !(stage == Stage::after && at.rank == rank);
  };
  recipe.edit = std::move(edit);
  return recipe;
}

TEST(Program, ExceptionIsRaisedAndItsRankNamed) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    raise(table, 1, "mat1 and mat2 cannot be multiplied");
    raise(table, 0, kPeerGone);
  }));
  EXPECT_EQ(arm.outcome, Outcome::raised) << told(arm);
  ASSERT_EQ(arm.findings.front().code, 801);
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1});
  EXPECT_EQ(arm.ranks[1].exception_text, "mat1 and mat2 cannot be multiplied");
  EXPECT_THAT(arm.headline, HasSubstr("rank 1 raised RuntimeError in backward"));
}

TEST(Program, ExceptionOnEveryRankNamesAll) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      raise(table, rank, "Expected to have finished reduction in the prior iteration");
    }
  }));
  EXPECT_EQ(arm.outcome, Outcome::raised);
  EXPECT_EQ(arm.findings.front().ranks, (std::vector<int>{0, 1}));
  EXPECT_TRUE(has_cause(arm, Cause::unused_parameter));
}

TEST(Program, KilledRankIsGuiltyAndItsPeerIsNot) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    raise(table, 0, kPeerGone);
    table.rank(1).end = RankEnd::signalled;
    table.rank(1).signal = SIGKILL;
    table.rank(1).phase = "backward";
  }));
  EXPECT_EQ(arm.outcome, Outcome::error) << told(arm);
  EXPECT_EQ(arm.findings.front().code, 802);
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1});
  EXPECT_EQ(arm.headline, "rank 1 died in backward (SIGKILL)");
}

TEST(Program, SilentExitIsAnErrorThoughItsStatusIsZero) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    raise(table, 0, kPeerGone);
    table.rank(1).end = RankEnd::exited;
  }));
  EXPECT_EQ(arm.outcome, Outcome::error);
  EXPECT_EQ(arm.findings.front().code, 802);
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1});
}

TEST(Program, DeadlineNamesTheSilentRank) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    table.rank(1).end = RankEnd::deadline;
    table.rank(1).deadline = "step (30 s)";
    table.rank(1).phase = "forward";
    table.rank(1).last_record = "event backward step 0";
    table.rank(0).end = RankEnd::deadline;  // ended by the front together with rank 1
    table.rank(0).deadline = kWaitedForOthers;
  }));
  EXPECT_EQ(arm.outcome, Outcome::error) << told(arm);
  EXPECT_EQ(arm.findings.front().code, 803);
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1});
  EXPECT_THAT(told(arm), HasSubstr("forward"));
  EXPECT_THAT(told(arm), HasSubstr("event backward step 0"));
}

TEST(Program, ADeadRankIsAccusedAndNotTheOneThatWaitedPastItsDeadline) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    table.rank(0).end = RankEnd::signalled;
    table.rank(0).signal = SIGKILL;
    table.rank(1).end = RankEnd::deadline;
    table.rank(1).deadline = "rendezvous (5 s)";
  }));
  EXPECT_EQ(arm.findings.front().code, 802) << told(arm);
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{0});
}

TEST(Program, WritingToADeadPeerIsAVictimsDeath) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    table.rank(0).end = RankEnd::signalled;
    table.rank(0).signal = SIGPIPE;
    table.rank(1).end = RankEnd::exited;
  }));
  EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1}) << told(arm);
}

TEST(Program, RankThatWaitedForAHungOneIsNotAccused) {
  for (const char* deadline : {"waiting for other ranks", "after rank 1 ended", "step"}) {
    const ArmReport arm = judged(cut_short([deadline](EvidenceTable& table) {
      for (const int rank : {0, 1}) table.rank(rank).end = RankEnd::deadline;
      table.rank(0).deadline = deadline;
      table.rank(1).deadline = "step";
      table.rank(1).events.pop_back();  // it got less far
    }));
    EXPECT_EQ(arm.outcome, Outcome::error);
    ASSERT_EQ(arm.findings.front().code, 803) << told(arm);
    EXPECT_EQ(arm.findings.front().ranks, std::vector<int>{1});
  }
}

TEST(Program, HangAtExitAfterGoodbyeIsANote) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      table.rank(rank).bye = ByeRecord{};
      table.rank(rank).end = RankEnd::deadline;
      table.rank(rank).deadline = "exit after bye";
    }
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 802));
}

TEST(Program, GoodbyeAfterAnExceptionIsStillRaised) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    raise(table, 1, "assertion failed");
    table.rank(1).end = RankEnd::bye;
    table.rank(1).bye = ByeRecord{1, 5};
  };
  EXPECT_EQ(judged(recipe).outcome, Outcome::raised);
}

TEST(Program, CrashAfterCompleteEvidenceIsANote) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    table.rank(1).end = RankEnd::signalled;
    table.rank(1).signal = SIGSEGV;
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  ASSERT_TRUE(has_code(arm, 802));
  EXPECT_EQ(arm.findings.front().severity, Severity::note);
}

TEST(Program, EveryRankKilledIsNeverComplete) {
  Recipe recipe;
  recipe.edit = [](EvidenceTable& table) {
    for (const int rank : {0, 1}) {
      table.rank(rank).end = RankEnd::signalled;
      table.rank(rank).signal = SIGKILL;
    }
  };
  EXPECT_EQ(judged(recipe).outcome, Outcome::error);
}

TEST(Program, LostConnectionWithoutACulpritIsRaised) {
  const ArmReport arm = judged(cut_short([](EvidenceTable& table) {
    raise(table, 0, kPeerGone);
    raise(table, 1, kPeerGone);
  }));
  EXPECT_EQ(arm.outcome, Outcome::raised) << told(arm);
}

TEST(Program, RanksThatDisagreeOnStepsAreInconclusive) {
  Recipe recipe;
  recipe.steps = 2;
  recipe.edit = [](EvidenceTable& table) {
    std::erase_if(table.rank(1).events, [](const EventRecord& event) { return event.step == 1; });
  };
  const ArmReport arm = judged(recipe);
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told(arm);
  EXPECT_TRUE(has_code(arm, 804));
}

}  // namespace
}  // namespace gradcheck
