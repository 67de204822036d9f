// SPDX-License-Identifier: Apache-2.0
// How a job's ranks end, and which of their steps count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::HasSubstr;

// One step in which rank 1 did not come to its end.
void cut_short(Job& job) {
  JobModel model(job, "Net");
  train(model, 0);
  std::erase_if(job.table().rank(1).marks,
                [](const MarkRecord& mark) { return mark.stage == Stage::after; });
}

void end_by(Job& job, int rank, int signal, std::int64_t order) {
  RankEvidence& evidence = job.table().rank(rank);
  evidence.end = RankEnd::signalled;
  evidence.signal = signal;
  evidence.end_order = order;
}

TEST(JobProgram, RankThatALauncherEndedForAnotherIsAVictim) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Job job;
    cut_short(job);
    end_by(job, 1, SIGSEGV, 1);
    end_by(job, 0, signal, 2);
    const ArmReport arm = job.judge({}, 1);
    EXPECT_EQ(arm.outcome, Outcome::error) << told(arm);
    ASSERT_TRUE(has_code(arm, 802));
    EXPECT_EQ(find_code_in(arm, 802)->ranks, std::vector<int>{1}) << told(arm);
  }
}

void raise_on_rank_1(Job& job, const std::string& type, const std::string& text) {
  EventRecord raised;
  raised.type = EventType::exception;
  raised.error_type = type;
  raised.text = text;
  RankEvidence& rank = job.table().rank(1);
  rank.events.push_back(raised);
  rank.end = RankEnd::exited;
  rank.exit_status = 1;
}

TEST(JobProgram, RankThatRaisedIsGuiltyOfTheOthersEnd) {
  Job job;
  cut_short(job);
  raise_on_rank_1(job, "ValueError", "no");
  job.table().rank(1).end_order = 1;
  end_by(job, 0, SIGTERM, 2);
  const ArmReport arm = job.judge({}, 1);
  EXPECT_EQ(arm.outcome, Outcome::raised) << told(arm);
  EXPECT_FALSE(has_code(arm, 802)) << told(arm);
}

TEST(JobProgram, LineThatOnlyAnnouncesIsToldWithTheNext) {
  Job job;
  cut_short(job);
  raise_on_rank_1(
      job, "BackendCompilerFailed",
      "backend='compile_fn' raised:\nNotImplementedError: no storage\n\nWhile executing");
  const ArmReport arm = job.judge({}, 1);
  EXPECT_NE(arm.headline.find("raised: NotImplementedError: no storage"), std::string::npos)
      << told(arm);
  EXPECT_EQ(arm.headline.find("While"), std::string::npos) << told(arm);
}

TEST(JobProgram, FirstToBeKilledIsGuiltyWhateverTheSignal) {
  Job job;
  cut_short(job);
  end_by(job, 1, SIGKILL, 1);
  end_by(job, 0, SIGTERM, 2);
  EXPECT_EQ(find_code_in(job.judge({}, 1), 802)->ranks, std::vector<int>{1});
}

TEST(JobProgram, OrderIsNoExcuseWhereTheOthersEndedWell) {
  Job job;
  cut_short(job);
  job.table().rank(0).end_order = 1;
  end_by(job, 1, SIGKILL, 2);
  const ArmReport arm = job.judge({}, 1);
  EXPECT_EQ(arm.outcome, Outcome::error);
  EXPECT_EQ(find_code_in(arm, 802)->ranks, std::vector<int>{1}) << told(arm);
}

TEST(JobProgram, VictimsAloneAreAccusedNotDereferenced) {
  Job job;
  cut_short(job);
  for (const int rank : {0, 1}) end_by(job, rank, SIGPIPE, 0);
  const ArmReport arm = job.judge({}, 1);
  EXPECT_EQ(arm.outcome, Outcome::error) << told(arm);
  EXPECT_TRUE(has_code(arm, 802));
}

void leave_without_goodbye(Job& job) {
  for (const int rank : {0, 1}) job.table().rank(rank).end = RankEnd::exited;
}

TEST(JobProgram, NobodySaysGoodbyeAndTheProgramFailedIsNeverComplete) {
  for (const std::optional<int> status : {std::optional<int>(), std::optional<int>(1)}) {
    Job job;
    JobModel model(job, "Net");
    train(model, 0);
    leave_without_goodbye(job);
    EXPECT_EQ(job.judge({}, status).outcome, Outcome::error);
  }
}

TEST(JobProgram, NobodySaysGoodbyeAndOneIsBehindIsNeverComplete) {
  Job job;
  cut_short(job);
  leave_without_goodbye(job);
  EXPECT_EQ(job.judge({}, 0).outcome, Outcome::error);
}

// os._exit runs no exit handler.
TEST(JobProgram, NobodySaysGoodbyeInAProgramThatSucceededIsANote) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  leave_without_goodbye(job);
  const ArmReport arm = job.judge({}, 0);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  ASSERT_TRUE(has_code(arm, 802));
  EXPECT_EQ(find_code_in(arm, 802)->severity, Severity::note);
}

TEST(JobProgram, HangAtExitIsANoteAndSaysSo) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  job.table().rank(1).end = RankEnd::deadline;
  job.table().rank(1).deadline = kHungAtExit;
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_THAT(told(arm), HasSubstr("rank 1 hung at exit after its evidence was complete"));
}

TEST(JobProgram, AbortOfAllAfterTheirExitBeganIsANote) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  for (const int rank : {0, 1}) {
    end_by(job, rank, SIGABRT, rank + 1);
    job.table().rank(rank).phase = "exit";
  }
  const ArmReport arm = job.judge({}, 1);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  EXPECT_TRUE(has_code(arm, 802));
}

// --- unequal steps

Job& uneven(Job& job, bool joined) {
  JobModel model(job, "Net");
  train(model, 0);
  train(model, 1);
  model.takes_part = [](int rank) { return rank == 0; };
  train(model, 2, {.reduced = false});
  if (joined) {
    for (const int rank : {0, 1}) model.event(rank, EventType::note).text = "join";
  }
  return job;
}

TEST(JobSteps, UnequalNumbersAreInconclusive) {
  Job job;
  const ArmReport arm = uneven(job, false).judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  ASSERT_TRUE(has_code(arm, 804));
  EXPECT_EQ(find_code_in(arm, 804)->message,
            "rank 1 took 2 optimizer steps of Net where others took 3");
}

TEST(JobSteps, UnequalNumbersUnderJoinAreANote) {
  Job job;
  const ArmReport arm = uneven(job, true).judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_note(arm, "step 2 is not judged: only rank 0 took part")) << told_with_notes(arm);
}

TEST(JobSteps, JoinHidesNoErrorInTheCommonSteps) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0, {.armed = false, .bare = true});
  for (const int rank : {0, 1}) model.event(rank, EventType::note).text = "join";
  EXPECT_EQ(job.judge().outcome, Outcome::inconsistent);
}

TEST(JobSteps, StepThatIsNeverTakenComparesNothing) {
  Job job;
  JobModel model(job, "Net");
  model.begin(0);
  model.backward();
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_THAT(arm.headline, HasSubstr("nothing was compared"));
}

// --- wrappers that are not judged

TEST(Unsupported, WrapperOfAnotherKindIsInconclusiveAndNamed) {
  Job job;
  for (const int rank : {0, 1}) {
    WrapperRecord wrapper;
    wrapper.model = "Net";
    wrapper.kind = "fsdp";
    job.table().rank(rank).wrappers.push_back(wrapper);
  }
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_THAT(arm.headline, HasSubstr("Net is wrapped by FullyShardedDataParallel (fsdp), which "
                                      "this version does not judge yet"));
}

TEST(Unsupported, WrapperOfAnotherKindIsNotHiddenByAModelThatIsRight) {
  Job job;
  JobModel model(job, "Critic");
  train(model, 0);
  for (const int rank : {0, 1}) {
    WrapperRecord wrapper;
    wrapper.model = "Actor";
    wrapper.kind = "deepspeed";
    job.table().rank(rank).wrappers.push_back(wrapper);
  }
  EXPECT_EQ(job.judge().outcome, Outcome::inconclusive);
}

TEST(Unsupported, TensorsOfItAreNotGuessedAt) {
  Job job;
  JobModel model(job, "Net");
  for (const int rank : {0, 1}) job.table().rank(rank).wrappers.front().kind = "fsdp2";
  train(model, 0, {.armed = false, .bare = true});
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconclusive) << told_with_notes(arm);
  EXPECT_EQ(arm.totals.differed, 0);
}

// --- buffers

TEST(JobBuffers, ThoseThatAreNotBroadcastAndDifferAreANote) {
  Job job;
  JobModel model(job, "Net");
  for (const int rank : {0, 1}) {
    job.table().rank(rank).wrappers.front().buffers = "rank_local";
    TensorRecord buffer;
    buffer.kind = TensorKind::buffer;
    buffer.stage = Stage::start;
    buffer.model = "Net";
    buffer.name = "running_mean";
    buffer.shape = {1};
    buffer.state = TensorState::finite;
    buffer.stats = measure(DType::f32, to_bytes(DType::f32, {1.0 + rank}));
    job.table().put(rank, buffer, job.next());
  }
  train(model, 0);
  for (const int rank : {0, 1}) job.table().rank(rank).marks.front().tensors += 1;
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told_with_notes(arm);
  EXPECT_TRUE(has_code(arm, 403));
}

// --- wants

TEST(JobWants, OnlyWhatDiffersInTheModelsOwnStepIsWanted) {
  Job job;
  JobModel actor(job, "Actor"), critic(job, "Critic");
  train(actor, 1);
  train(critic, 1, {.escapes = {"head.weight"}});
  job.table().finish();
  EXPECT_TRUE(wanted_payloads_of_model(job.table(), "Actor", 1, 1 << 20, false).empty());
  EXPECT_TRUE(wanted_payloads_of_model(job.table(), "Nobody", 1, 1 << 20, false).empty());
  const auto wants = wanted_payloads_of_model(job.table(), "Critic", 1, 1 << 20, false);
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_EQ(wants[0].stage, Stage::reduced);
  EXPECT_THAT(wants[0].names, testing::ElementsAre("Critic/head.weight"));
  EXPECT_EQ(wanted_payloads_of_model(job.table(), "Critic", 1, 1 << 20, true).size(), 2U);
}

TEST(JobSteps, JoinExemptsTheJoinedModelOnly) {
  for (const bool ours : {true, false}) {
    Job job;
    JobModel model(job, "Net"), other(job, "Critic");
    train(model, 0);
    train(other, 0);
    model.takes_part = [](int rank) { return rank == 0; };
    train(model, 1);
    for (const int rank : {0, 1}) {
      EventRecord& note = model.event(rank, EventType::note);
      note.text = "join";
      note.model = ours ? "Net" : "Critic";
    }
    const ArmReport arm = job.judge();
    EXPECT_EQ(arm.outcome, ours ? Outcome::consistent : Outcome::inconclusive)
        << told_with_notes(arm);
  }
}

}  // namespace
}  // namespace gradcheck
