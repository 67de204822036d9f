// SPDX-License-Identifier: Apache-2.0
#include "probes/native/snapshot/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "numeric/kernel.h"
#include "probes/native/snapshot/tensor_bytes.h"
#include "tests/probes/native/front_end.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

// A model of one parameter, whose gradient the test sets by hand.
class RecorderOf : public OneThread {
 protected:
  Recorder& recorder() {
    if (!recorder_) {
      recorder_.emplace("policy", parameters, buffers, sharding, front.journal(), faults_);
    }
    return *recorder_;
  }
  void set_gradient(const at::Tensor& gradient) { parameters[0].value.mutable_grad() = gradient; }
  // The tensor record of a stage that has just been recorded.
  nlohmann::json last() {
    const auto lines = front.lines();
    EXPECT_EQ(lines.at(lines.size() - 2)["type"], "tensor");
    return lines.at(lines.size() - 2);
  }
  const at::Tensor& kept(Stage stage) {
    return recorder().clones().at(0, stage).at("policy/weight");
  }

  FrontEnd front;
  ModelTensors parameters = {{"weight", at::zeros({2, 3}).requires_grad_()}};
  ModelTensors buffers;
  Recorder::Sharding sharding;

 private:
  const Faults faults_{std::nullopt, 0};
  std::optional<Recorder> recorder_;
};

TEST_F(RecorderOf, AMinusZeroThatWasAPlusZeroIsAnotherGradient) {
  set_gradient(at::zeros({2, 3}));
  recorder().record_reduced();
  const nlohmann::json reduced = last();
  parameters[0].value.mutable_grad().neg_();
  recorder().record_final();
  const nlohmann::json final = last();
  EXPECT_NE(final["digest"], reduced["digest"]);
  EXPECT_TRUE(final.contains("l2"));
  EXPECT_TRUE(kept(Stage::final).signbit().all().item<bool>());
  EXPECT_FALSE(kept(Stage::reduced).signbit().any().item<bool>());
}

TEST_F(RecorderOf, ANanThatStaysIsTheSameGradient) {
  set_gradient(at::full({2, 3}, std::numeric_limits<double>::quiet_NaN()));
  recorder().record_reduced();
  const nlohmann::json reduced = last();
  recorder().record_final();
  const nlohmann::json final = last();
  EXPECT_EQ(final["digest"], reduced["digest"]);
  EXPECT_TRUE(reduced.contains("l2"));
  EXPECT_FALSE(final.contains("l2"));
  EXPECT_TRUE(kept(Stage::final).is_same(kept(Stage::reduced)));
}

TEST_F(RecorderOf, AChangeAfterTheReductionIsMeasuredInFull) {
  set_gradient(at::full({2, 3}, 2.0));
  recorder().record_reduced();
  front.lines();
  parameters[0].value.mutable_grad().mul_(0.5);
  recorder().record_final();
  EXPECT_EQ(last()["max_abs"], 1);
  EXPECT_EQ(kept(Stage::reduced).sum().item<double>(), 12);
  EXPECT_EQ(kept(Stage::final).sum().item<double>(), 6);
}

TEST_F(RecorderOf, AGradientThatIsNotRowMajorIsRecordedInLogicalOrder) {
  const at::Tensor gradient = at::arange(6, at::kFloat).reshape({3, 2}).t();
  set_gradient(gradient);
  recorder().record_reduced();
  const nlohmann::json reduced = last();
  recorder().record_final();
  EXPECT_EQ(last()["digest"], reduced["digest"]);
  EXPECT_TRUE(kept(Stage::final).is_contiguous());
  EXPECT_TRUE(kept(Stage::final).equal(gradient));
}

TEST_F(RecorderOf, AGradientThatIsNotThereIsAbsentFromEveryStage) {
  recorder().record_reduced();
  EXPECT_EQ(last()["state"], "absent");
  recorder().record_final();
  EXPECT_EQ(last()["state"], "absent");
  EXPECT_TRUE(recorder().clones().at(0, Stage::final).empty());
}

TEST_F(RecorderOf, AFrozenParameterSaysSo) {
  recorder().record_start();
  EXPECT_EQ(last()["requires_grad"], true);
  ModelTensors frozen = {{"weight", at::zeros({2})}};
  const Faults none(std::nullopt, 0);
  Recorder other("policy", frozen, buffers, {}, front.journal(), none);
  other.record_start();
  EXPECT_EQ(last()["requires_grad"], false);
}

TEST_F(RecorderOf, AFrozenParameterHasNoGradientToRecord) {
  ModelTensors frozen = {{"weight", at::zeros({2})}};
  const Faults none(std::nullopt, 0);
  Recorder other("policy", frozen, buffers, {}, front.journal(), none);
  other.record_local();
  EXPECT_EQ(front.lines().back()["tensors"], 0);
  other.record_reduced();
  EXPECT_EQ(front.lines().back()["tensors"], 0);
  other.record_final();
  EXPECT_EQ(front.lines().back()["tensors"], 0);
}

TEST_F(RecorderOf, StartIsACopyAndAfterIsTheParameterItself) {
  recorder().record_start();
  {
    const at::NoGradGuard no_grad;
    parameters[0].value.add_(1);
  }
  recorder().record_after();
  EXPECT_EQ(kept(Stage::start).sum().item<double>(), 0);
  EXPECT_EQ(kept(Stage::after).sum().item<double>(), 6);
  EXPECT_EQ(kept(Stage::after).const_data_ptr(), parameters[0].value.const_data_ptr());
}

// Part for part, as two ranks would record them: sketches of parts add up to that of the whole.
TEST_F(RecorderOf, AShardIsRecordedAtItsPlaceInTheWhole) {
  at::Tensor part = at::zeros({2}).requires_grad_();
  part.mutable_grad() = at::arange(2, at::kFloat);
  const std::vector<OwnedShard> owned = {{part, 4, {2, 3}}};
  sharding = {&owned, true};
  recorder().record_reduced();
  const nlohmann::json reduced = last();
  EXPECT_EQ(reduced["layout"], "shard");
  EXPECT_EQ(reduced["shape"], nlohmann::json({2}));
  EXPECT_EQ(reduced["global_shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(reduced["offset"], 4);
  Kernel kernel(DType::f32, KernelMode::full, 4);
  kernel.update(bytes_of(part.grad()));
  EXPECT_EQ(kept(Stage::reduced).sum().item<double>(), 1);
  EXPECT_EQ(reduced["digest"], to_hex(kernel.finish().digest));
  recorder().record_start();
  EXPECT_EQ(last()["layout"], "shard");
}

}  // namespace
}  // namespace gradcheck::native
