// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "probes/native/models/model_table.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

Decoder model_named(const std::string& name, std::int64_t hidden_size = 0) {
  NativeProgram program;
  program.model = name;
  program.hidden_size = hidden_size;
  program.dtype = "fp32";
  return make_model(name, program, 7);
}

class DecoderModel : public OneThread {};

at::Tensor some_tokens() { return at::arange(24, at::kLong).reshape({2, 12}); }

TEST_F(DecoderModel, HasTheTensorsOfTheRealModelHeadTied) {
  const Decoder model = model_named("qwen3_0_6b");
  EXPECT_EQ(model.parameters().size(), 310U);
  EXPECT_EQ(model.buffers().size(), 1U);
  EXPECT_TRUE(model.head().is_same(model.parameters().front().value));
}

TEST_F(DecoderModel, HasTheTensorsOfTheTinyModelHeadApart) {
  const Decoder model = model_named("qwen3_tiny_untied");
  EXPECT_EQ(model.parameters().size(), 25U);
  EXPECT_EQ(model.parameters().back().name, "lm_head.weight");
  EXPECT_FALSE(model.head().is_same(model.parameters().front().value));
}

TEST_F(DecoderModel, NamesParametersInTheOrderOfTransformers) {
  const ModelTensors parameters = model_named("qwen3_0_6b").parameters();
  EXPECT_EQ(parameters[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(parameters[1].name, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(parameters[11].name, "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(parameters[12].name, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(parameters[309].name, "model.norm.weight");
}

struct Inventory {
  const char* model;
  std::size_t parameters;
  std::size_t trainable;
  std::size_t buffers;
};

TEST_F(DecoderModel, HaveTheTensorsOfTheOriginals) {
  const Inventory originals[] = {
      {"qwen2_tiny_untied", 27, 27, 1},      {"minimind", 90, 90, 2},
      {"minimind_untied", 91, 91, 2},        {"minimind_critic", 92, 92, 2},
      {"minimind_critic_untied", 93, 93, 2}, {"minimind_moe", 170, 170, 2},
      {"minimind_lora", 122, 32, 2}};
  for (const Inventory& original : originals) {
    const Decoder model = model_named(original.model);
    const auto trains = [](const ModelTensor& t) { return t.value.requires_grad(); };
    EXPECT_EQ(model.parameters().size(), original.parameters) << original.model;
    EXPECT_EQ(std::ranges::count_if(model.parameters(), trains), original.trainable)
        << original.model;
    EXPECT_EQ(model.buffers().size(), original.buffers) << original.model;
  }
}

TEST_F(DecoderModel, NamesParametersInTheOrderOfMinimind) {
  const ModelTensors parameters = model_named("minimind_moe").parameters();
  EXPECT_EQ(parameters[6].name, "model.layers.0.self_attn.k_norm.weight");
  EXPECT_EQ(parameters[7].name, "model.layers.0.input_layernorm.weight");
  EXPECT_EQ(parameters[9].name, "model.layers.0.mlp.gate.weight");
  EXPECT_EQ(parameters[11].name, "model.layers.0.mlp.experts.0.down_proj.weight");
  EXPECT_EQ(model_named("minimind").buffers()[0].name, "model.freqs_cos");
  EXPECT_EQ(model_named("minimind_lora").parameters()[2].name,
            "model.layers.0.self_attn.q_proj.lora.A.weight");
}

TEST_F(DecoderModel, BothRotaryFormsAreTheSameRotation) {
  DecoderConfig config{.layers = 2};
  const Decoder angles(config, 3, at::kFloat);
  config.family = Family::minimind;
  const Decoder tables(config, 3, at::kFloat);
  for (std::size_t i = 0; i < angles.parameters().size(); ++i) {
    for (const ModelTensor& tensor : tables.parameters()) {
      if (tensor.name == angles.parameters()[i].name) {
        tensor.value.detach().copy_(angles.parameters()[i].value.detach());
      }
    }
  }
  const at::Tensor distance = (angles.logits(some_tokens()) - tables.logits(some_tokens())).abs();
  EXPECT_LE(distance.max().item<double>(), 1e-5);
}

TEST_F(DecoderModel, RotaryTablesOfMinimindsRealSizeAre25Megabytes) {
  const Decoder model({.family = Family::minimind, .layers = 0, .head_dim = 96, .positions = 32768},
                      3, at::kFloat);
  std::size_t bytes = 0;
  for (const ModelTensor& buffer : model.buffers()) bytes += buffer.value.nbytes();
  EXPECT_EQ(bytes, 25'165'824U);
}

TEST_F(DecoderModel, CriticNormsTwiceAndLeavesAnUntiedHeadAlone) {
  const Decoder model = model_named("minimind_critic_untied");
  model.values(some_tokens()).square().mean().backward();
  for (const ModelTensor& tensor : model.parameters()) {
    EXPECT_EQ(tensor.value.grad().defined(), tensor.name != "lm_head.weight") << tensor.name;
  }
}

TEST_F(DecoderModel, AdaptersLearnInBFirst) {
  const Decoder model = model_named("minimind_lora");
  model.logits(some_tokens()).square().mean().backward();
  for (const ModelTensor& tensor : model.parameters()) {
    if (!tensor.value.requires_grad()) continue;
    const bool moves = tensor.value.grad().abs().max().item<double>() > 0;
    EXPECT_EQ(moves, tensor.name.find("lora.B") != std::string::npos) << tensor.name;
  }
}

TEST_F(DecoderModel, IdleExpertHasZeroGradientsIfTouchedAndNoneOtherwise) {
  for (const bool touched : {true, false}) {
    Decoder model = model_named("minimind_moe");
    model.set_idle_experts(1, touched);
    model.logits(some_tokens()).square().mean().backward();
    for (const ModelTensor& tensor : model.parameters()) {
      if (tensor.name.find("experts.0.") == std::string::npos) continue;
      ASSERT_EQ(tensor.value.grad().defined(), touched) << tensor.name;
      if (!touched) continue;
      EXPECT_EQ(tensor.value.grad().abs().max().item<double>(), 0) << tensor.name;
    }
  }
}

TEST_F(DecoderModel, NamesNoTensorTwice) {
  std::set<std::string> names;
  const ModelTensors parameters = model_named("qwen3_0_6b").parameters();
  for (const ModelTensor& tensor : parameters) names.insert(tensor.name);
  EXPECT_EQ(names.size(), parameters.size());
}

TEST_F(DecoderModel, HeadDimensionIsNotHiddenByHeads) {
  const ModelTensors parameters = model_named("qwen3_0_6b").parameters();
  EXPECT_EQ(parameters[1].value.size(0), 32);  // q_proj: 4 heads of 8
  EXPECT_EQ(parameters[1].value.size(1), 16);
  EXPECT_EQ(parameters[5].value.size(0), 8);  // q_norm
}

TEST_F(DecoderModel, GivesEveryParameterAGradient) {
  const Decoder model = model_named("qwen3_0_6b");
  model.logits(some_tokens()).square().mean().backward();
  for (const ModelTensor& tensor : model.parameters()) {
    ASSERT_TRUE(tensor.value.grad().defined()) << tensor.name;
    EXPECT_GT(tensor.value.grad().abs().max().item<double>(), 0) << tensor.name;
  }
}

TEST_F(DecoderModel, LooksAtNoLaterToken) {
  const Decoder model = model_named("qwen3_tiny_untied");
  const at::Tensor tokens = some_tokens();
  at::Tensor changed = tokens.clone();
  changed.narrow(1, 6, 6).fill_(99);
  const auto early = [&](const at::Tensor& t) { return model.logits(t).narrow(1, 0, 6); };
  EXPECT_TRUE(early(tokens).equal(early(changed)));
  EXPECT_FALSE(model.logits(tokens).equal(model.logits(changed)));
}

TEST_F(DecoderModel, DependsOnTheSeedOnly) {
  const Decoder model = model_named("qwen3_tiny_untied");
  const Decoder again = model_named("qwen3_tiny_untied");
  EXPECT_TRUE(model.logits(some_tokens()).equal(again.logits(some_tokens())));
}

TEST_F(DecoderModel, PerturbedCopySharesNothing) {
  const Decoder model = model_named("qwen3_tiny_untied");
  const Decoder copy = model.perturbed_copy(0.02, 8);
  EXPECT_EQ(copy.parameters().size(), model.parameters().size());
  EXPECT_FALSE(copy.parameters()[0].value.requires_grad());
  EXPECT_FALSE(copy.logits(some_tokens()).equal(model.logits(some_tokens())));
}

TEST_F(DecoderModel, WidensWithHiddenSizeAndKeepsTheTopology) {
  const Decoder model = model_named("qwen3_0_6b", 64);
  EXPECT_EQ(model.parameters().size(), 310U);
  EXPECT_EQ(model.parameters()[0].value.size(1), 64);
}

TEST_F(DecoderModel, RefusesAWidthThatHeadsDoNotDivide) {
  EXPECT_THROW(model_named("qwen3_0_6b", 18), std::invalid_argument);
}

TEST_F(DecoderModel, DropsOutInTrainingModeOnlyAndTheSameForTheSameSeed) {
  Decoder model = model_named("qwen3_tiny_untied");
  const at::Tensor whole = model.hidden(some_tokens());
  const auto seeded = [&](std::uint64_t seed) {
    model.seed_dropout(seed);
    return model.hidden(some_tokens());
  };
  model.set_dropout(0.1);
  const at::Tensor thinned = seeded(1);
  EXPECT_FALSE(thinned.equal(whole));
  EXPECT_TRUE(seeded(1).equal(thinned));
  EXPECT_FALSE(seeded(2).equal(thinned));
  model.train(false);
  EXPECT_TRUE(seeded(1).equal(whole));
}

TEST_F(DecoderModel, IsInItsModeAgainAfterEvaluationAlsoWhenSomethingWasThrown) {
  Decoder model = model_named("qwen3_tiny_untied");
  const auto roll_out = [&] {
    const EvalMode mode(model);
    EXPECT_FALSE(model.training());
    throw std::runtime_error("the roll-out failed");
  };
  EXPECT_THROW(roll_out(), std::runtime_error);
  EXPECT_TRUE(model.training());
  model.train(false);
  EXPECT_THROW(roll_out(), std::runtime_error);
  EXPECT_FALSE(model.training());
}

}  // namespace
}  // namespace gradcheck::native
