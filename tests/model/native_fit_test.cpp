// SPDX-License-Identifier: Apache-2.0
#include "model/native_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gradcheck {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

NativeProgram fitting() {
  NativeProgram program;
  program.model = "qwen3_0_6b";
  program.trainer = "dpo";
  program.loss = "chunked";
  program.wrapper.kind = "ddp";
  program.path = "redirected";
  return program;
}

template <typename Change>
std::string misfit_after(Change change) {
  NativeProgram program = fitting();
  change(program);
  return misfit_of(program);
}

TEST(NativeFit, HasNothingAgainstAProgramThatFits) { EXPECT_EQ(misfit_of(fitting()), ""); }

TEST(NativeFit, NamesPathAndWrapper) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.wrapper.kind = "none"; }),
              AllOf(HasSubstr("path"), HasSubstr("wrapper")));
}

TEST(NativeFit, NamesPathAndLoss) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.path = "wrapped"; }),
              AllOf(HasSubstr("path \"wrapped\""), HasSubstr("loss \"chunked\"")));
}

TEST(NativeFit, APathAndAGuardDoNotGoTogether) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.guard = "final"; }),
              AllOf(HasSubstr("guard \"final\""), HasSubstr("path \"redirected\"")));
  EXPECT_EQ(misfit_after([](NativeProgram& p) {
              p.guard = "final";
              p.path = "";
            }),
            "");
}

TEST(NativeFit, NamesWhatAWrapperThatShardsDoesNotHave) {
  const auto under = [](const char* kind, auto change) {
    return misfit_after([&](NativeProgram& p) {
      p.wrapper.kind = kind;
      change(p);
    });
  };
  EXPECT_EQ(under("zero2", [](NativeProgram& p) { p.wrapper.options.hook = "sum"; }), "");
  EXPECT_THAT(under("zero2", [](NativeProgram& p) { p.wrapper.options.static_graph = true; }),
              AllOf(HasSubstr("wrapper: kind \"zero2\""), HasSubstr("static_graph")));
  EXPECT_THAT(under("fsdp1", [](NativeProgram& p) { p.clip_norm = 1; }),
              AllOf(HasSubstr("\"fsdp1\""), HasSubstr("clip_norm")));
  EXPECT_THAT(under("fsdp2", [](NativeProgram& p) { p.grad_scale = 8; }),
              AllOf(HasSubstr("\"fsdp2\""), HasSubstr("grad_scale")));
  EXPECT_THAT(under("zero3", [](NativeProgram& p) { p.trainer = "grpo"; }),
              AllOf(HasSubstr("\"zero3\""), HasSubstr("trainer \"grpo\"")));
  EXPECT_EQ(under("zero2", [](NativeProgram& p) { p.trainer = "grpo"; }), "");
  EXPECT_THAT(under("ddp", [](NativeProgram& p) { p.fault.emplace().kind = "corrupt_shard"; }),
              AllOf(HasSubstr("corrupt_shard"), HasSubstr("\"ddp\"")));
}

TEST(NativeFit, NamesAnObjectiveAndTheTrainerItDoesNotBelongTo) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.objectives = {{"kto", 1}}; }),
              AllOf(HasSubstr("\"kto\""), HasSubstr("trainer \"dpo\"")));
}

TEST(NativeFit, RefusesAKlTermThatHasNothingToBeAddedTo) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) {
                p.trainer = "grpo";
                p.objectives = {{"k3", 0.1}};
              }),
              AllOf(HasSubstr("\"k3\""), HasSubstr("trainer \"grpo\"")));
}

TEST(NativeFit, RefusesWhatTheFusedLossCannotCompute) {
  const auto fused = [](auto change) {
    return misfit_after([&](NativeProgram& p) {
      p.loss = "fused";
      change(p);
    });
  };
  EXPECT_EQ(fused([](NativeProgram& p) { p.objectives = {{"sigmoid", 1}}; }), "");
  EXPECT_THAT(fused([](NativeProgram& p) { p.objectives = {{"aot", 1}}; }),
              AllOf(HasSubstr("loss \"fused\""), HasSubstr("\"aot\"")));
  EXPECT_THAT(fused([](NativeProgram& p) { p.label_smoothing = 0.1; }),
              HasSubstr("label_smoothing"));
  EXPECT_THAT(fused([](NativeProgram& p) {
                p.trainer = "kto";
                p.desirable_weight = 2;
              }),
              HasSubstr("desirable_weight"));
}

TEST(NativeFit, NamesATrainerAndTheBatchItCannotHave) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.batch_size = 3; }),
              AllOf(HasSubstr("trainer \"dpo\""), HasSubstr("batch_size")));
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.labels = "one_sided"; }),
              AllOf(HasSubstr("trainer \"dpo\""), HasSubstr("labels")));
}

TEST(NativeFit, NamesATrainerAndAKeyItDoesNotRead) {
  const auto refuses = [](auto change, const char* key) {
    EXPECT_THAT(misfit_after(change), AllOf(HasSubstr("trainer \"dpo\""), HasSubstr(key)));
  };
  refuses([](NativeProgram& p) { p.undesirable_weight = 2; }, "undesirable_weight");
  refuses([](NativeProgram& p) { p.rewards = "equal"; }, "rewards");
  refuses([](NativeProgram& p) { p.epochs = 2; }, "epochs");
  refuses([](NativeProgram& p) { p.count_items = true; }, "count_items");
  refuses([](NativeProgram& p) { p.critic = Critic{"minimind_critic", "redirected"}; }, "critic");
}

TEST(NativeFit, NamesACriticAndTheTrainerThatHasNone) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.model = "minimind_critic"; }),
              AllOf(HasSubstr("trainer \"dpo\""), HasSubstr("model \"minimind_critic\"")));
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.trainer = "critic"; }),
              AllOf(HasSubstr("trainer \"critic\""), HasSubstr("model \"qwen3_0_6b\"")));
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.trainer = "ppo"; }), HasSubstr("critic"));
}

TEST(NativeFit, RefusesMoreIdleExpertsThanAreDeclared) {
  const auto idle = [](std::int64_t experts) {
    return misfit_after([&](NativeProgram& p) {
      p.model = "minimind_moe";
      p.idle_experts = experts;
    });
  };
  EXPECT_EQ(idle(3), "");
  EXPECT_THAT(idle(4), AllOf(HasSubstr("idle_experts 4"), HasSubstr("model \"minimind_moe\"")));
}

TEST(NativeFit, KeepsLogitOptionsFromWhatDoesNotReadThem) {
  const auto capped = [](auto change) {
    return misfit_after([&](NativeProgram& p) {
      p.logits.softcap = 5;
      change(p);
    });
  };
  EXPECT_EQ(capped([](NativeProgram&) {}), "");
  EXPECT_THAT(capped([](NativeProgram& p) { p.loss = "fused"; }),
              AllOf(HasSubstr("loss \"fused\""), HasSubstr("logits")));
  EXPECT_THAT(capped([](NativeProgram& p) { p.trainer = "gkd"; }),
              AllOf(HasSubstr("trainer \"gkd\""), HasSubstr("logits")));
}

TEST(NativeFit, NamesAModelWithoutExpertsAndTheKeyAboutThem) {
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.idle_expert = "always"; }),
              AllOf(HasSubstr("model \"qwen3_0_6b\""), HasSubstr("idle_expert")));
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.touch_idle_expert = false; }),
              HasSubstr("touch_idle_expert"));
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.idle_experts = 2; }),
              AllOf(HasSubstr("model \"qwen3_0_6b\""), HasSubstr("idle_experts")));
  EXPECT_THAT(misfit_after([](NativeProgram& p) { p.balance_share = 0; }),
              AllOf(HasSubstr("model \"qwen3_0_6b\""), HasSubstr("balance_share")));
}

std::string misfit_of_roll_out(const std::function<void(NativeProgram&)>& change) {
  return misfit_after([&](NativeProgram& p) {
    p.trainer = "grpo";
    p.loss = "dense";
    p.path = "wrapped";
    p.roll_out = RollOut{};
    change(p);
  });
}

TEST(NativeFit, HasNothingAgainstARollOut) {
  EXPECT_EQ(misfit_of_roll_out([](NativeProgram&) {}), "");
  EXPECT_EQ(misfit_of_roll_out([](NativeProgram& p) {
              p.roll_out->autocast = "bf16";
              p.roll_out->log_softmax = "outside";
            }),
            "");
}

TEST(NativeFit, NamesARollOutAndTheTrainerThatHasNone) {
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) { p.trainer = "dpo"; }),
              AllOf(HasSubstr("roll_out"), HasSubstr("trainer \"dpo\"")));
}

TEST(NativeFit, NamesARollOutAndWhatItCannotGoWith) {
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) {
                p.loss = "chunked";
                p.path = "redirected";
              }),
              AllOf(HasSubstr("roll_out"), HasSubstr("loss \"chunked\"")));
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) {
                p.trainer = "agent";
                p.labels = "all_masked";
              }),
              AllOf(HasSubstr("roll_out"), HasSubstr("labels \"all_masked\"")));
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) { p.logits.scale = 2; }),
              AllOf(HasSubstr("roll_out"), HasSubstr("logits")));
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) { p.roll_out->log_softmax = "outside"; }),
              AllOf(HasSubstr("log_softmax"), HasSubstr("autocast")));
}

TEST(NativeFit, NamesAMistakeThatCannotBeMade) {
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) { p.roll_out->mistake = "mask"; }),
              AllOf(HasSubstr("mistake \"mask\""), HasSubstr("trainer \"agent\"")));
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) { p.roll_out->mistake = "temperature"; }),
              AllOf(HasSubstr("mistake \"temperature\""), HasSubstr("temperature than 1")));
  EXPECT_THAT(misfit_of_roll_out([](NativeProgram& p) {
                p.roll_out->mistake = "packing";
                p.batch_size = 5;
              }),
              AllOf(HasSubstr("mistake \"packing\""), HasSubstr("batch_size")));
}

}  // namespace
}  // namespace gradcheck
