// SPDX-License-Identifier: Apache-2.0
// In which precision, and where, log-probs are made.
#include "verdict/precisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/made_up_job.h"

namespace gradcheck {
namespace {

using namespace made_up;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

EventRecord call_in(const std::string& dtype, const std::string& site, bool grad_mode) {
  EventRecord call;
  call.type = EventType::log_softmax;
  call.op = "log_softmax";
  call.dtype = call.result_dtype = dtype;
  call.grad_mode = grad_mode;
  call.autocast = false;
  call.classes = 1024;
  call.site = site;
  return call;
}

const EventRecord kOld = call_in("bf16", "rollout.py:88", false);
const EventRecord kNew = call_in("f32", "train.py:140", true);

// A healthy job whose ranks all made these calls.
ArmReport judged(const std::vector<EventRecord>& calls, const std::vector<int>& ranks = {0, 1}) {
  Job job;
  JobModel model(job, "Net");
  for (const int rank : ranks) {
    auto& events = job.table().rank(rank).events;
    events.insert(events.end(), calls.begin(), calls.end());
  }
  train(model, 0);
  return job.judge();
}

std::size_t notes_of(const ArmReport& arm) {
  return static_cast<std::size_t>(
      std::count_if(arm.findings.begin(), arm.findings.end(),
                    [](const Finding& finding) { return finding.code == 590; }));
}

TEST(Precisions, TwoAtTwoSitesAreOneNoteThatNamesBothAndDecidesNothing) {
  const ArmReport arm = judged({kNew, kOld});
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
  ASSERT_EQ(notes_of(arm), 1) << told(arm);
  const Finding& finding = *find_code_in(arm, 590);
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_EQ(finding.ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(finding.message,
            "two precisions at two call sites over 1024 classes: log_softmax in bf16 at "
            "rollout.py:88 (no_grad), log_softmax in f32 at train.py:140 (grad)");
  EXPECT_TRUE(arm.causes.empty());
}

TEST(Precisions, OnePrecisionIsNoNote) {
  EventRecord other = kOld;
  other.dtype = other.result_dtype = "f32";
  const ArmReport arm = judged({kNew, other});
  EXPECT_EQ(notes_of(arm), 0) << told(arm);
  EXPECT_EQ(arm.outcome, Outcome::consistent) << told(arm);
}

TEST(Precisions, ResultCountsNotTheInput) {
  EventRecord upcast = kOld;  // what CPU autocast makes of cross_entropy
  upcast.op = "cross_entropy";
  upcast.autocast = true;
  upcast.result_dtype = "f32";
  EXPECT_EQ(notes_of(judged({kNew, upcast})), 0);
  EventRecord downcast = kNew;
  downcast.result_dtype = "bf16";
  downcast.autocast = true;
  const ArmReport arm = judged({kNew, downcast});
  EXPECT_EQ(notes_of(arm), 0) << "one site: " << told(arm);
  downcast.site = "train.py:99";
  EXPECT_THAT(find_code_in(judged({kNew, downcast}), 590)->message, HasSubstr("(grad, autocast)"));
}

TEST(Precisions, WiderThanSingleIsNoNoteBesideIt) {
  EXPECT_EQ(notes_of(judged({kNew, call_in("f64", "metrics.py:3", false)})), 0);
  EXPECT_EQ(notes_of(judged({kOld, call_in("f16", "metrics.py:3", false)})), 1);
}

TEST(Precisions, VocabulariesAreApart) {
  EventRecord other = kNew;
  other.classes = 2048;
  EXPECT_EQ(notes_of(judged({kOld, other})), 0);
  EventRecord second = kOld;
  second.classes = 2048;
  EXPECT_EQ(notes_of(judged({kOld, kNew, other, second})), 2);
}

TEST(Precisions, OldAndNewComeBeforeOtherPairs) {
  const EventRecord metric = call_in("f32", "a_metric.py:7", false);
  const ArmReport arm = judged({metric, kNew, kOld});
  ASSERT_EQ(notes_of(arm), 1) << told(arm);
  EXPECT_THAT(find_code_in(arm, 590)->message, HasSubstr("train.py:140"));
}

TEST(Precisions, CallWithoutSiteOrTypeIsNoHalfOfAPair) {
  EventRecord nowhere = kOld;
  nowhere.site.clear();
  EXPECT_EQ(notes_of(judged({kNew, nowhere})), 0);
  EventRecord untyped = kNew;
  untyped.dtype.clear();
  untyped.result_dtype.clear();
  EXPECT_EQ(notes_of(judged({kOld, untyped})), 0);
}

TEST(Precisions, SitesOfDifferentRanksMakeAPairToo) {
  Job job;
  JobModel model(job, "Net");
  job.table().rank(0).events.push_back(kOld);
  job.table().rank(1).events.push_back(kNew);
  train(model, 0);
  EXPECT_EQ(notes_of(job.judge()), 1);
}

TEST(Precisions, OutcomeOfADisagreeingJobStays) {
  Job job;
  JobModel model(job, "Net");
  for (const int rank : {0, 1}) {
    job.table().rank(rank).events.push_back(kOld);
    job.table().rank(rank).events.push_back(kNew);
  }
  train(model, 0, {.armed = false, .bare = true});
  const ArmReport arm = job.judge();
  EXPECT_EQ(arm.outcome, Outcome::inconsistent) << told(arm);
  EXPECT_EQ(arm.findings.back().code, 590) << told(arm);
}

TEST(Precisions, ScopeSaysHowManyCallsWereSeen) {
  EXPECT_THAT(judged({}).scope.not_checked, Contains("log-probs: not seen"));
  EXPECT_THAT(judged({kOld}).scope.not_checked, Contains("log-probs: 1 call seen, no arrays"));
  EXPECT_THAT(judged({kOld, kNew, kNew}).scope.not_checked,
              Contains("log-probs: 2 calls seen, no arrays"));
}

TEST(Precisions, ScopeOfANativeArmSaysNothingOfThem) {
  Job job;
  JobModel model(job, "Net");
  train(model, 0);
  job.table().finish();
  const ArmReport arm = judge({job.table(), {}, {}, 1, 1, true});
  EXPECT_THAT(arm.scope.not_checked, Not(Contains(HasSubstr("log-probs"))));
}

}  // namespace
}  // namespace gradcheck
