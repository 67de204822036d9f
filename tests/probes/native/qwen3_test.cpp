// SPDX-License-Identifier: Apache-2.0
#include "probes/native/models/qwen3.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "probes/native/models/model_table.h"
#include "tests/probes/native/one_thread.h"

namespace gradcheck::native {
namespace {

Qwen3 model_named(const std::string& name, std::int64_t hidden_size = 0) {
  NativeProgram program;
  program.model = name;
  program.hidden_size = hidden_size;
  program.dtype = "fp32";
  return make_model(program, 7);
}

class Qwen3Decoder : public OneThread {};

at::Tensor some_tokens() { return at::arange(24, at::kLong).reshape({2, 12}); }

TEST_F(Qwen3Decoder, HasTheTensorsOfTheRealModelHeadTied) {
  const Qwen3 model = model_named("qwen3_0_6b");
  EXPECT_EQ(model.parameters().size(), 310U);
  EXPECT_EQ(model.buffers().size(), 1U);
  EXPECT_TRUE(model.head().is_same(model.parameters().front().value));
}

TEST_F(Qwen3Decoder, HasTheTensorsOfTheTinyModelHeadApart) {
  const Qwen3 model = model_named("qwen3_tiny_untied");
  EXPECT_EQ(model.parameters().size(), 25U);
  EXPECT_EQ(model.parameters().back().name, "lm_head.weight");
  EXPECT_FALSE(model.head().is_same(model.parameters().front().value));
}

TEST_F(Qwen3Decoder, NamesParametersInTheOrderOfTransformers) {
  const ModelTensors parameters = model_named("qwen3_0_6b").parameters();
  EXPECT_EQ(parameters[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(parameters[1].name, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(parameters[11].name, "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(parameters[12].name, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(parameters[309].name, "model.norm.weight");
}

TEST_F(Qwen3Decoder, NamesNoTensorTwice) {
  std::set<std::string> names;
  const ModelTensors parameters = model_named("qwen3_0_6b").parameters();
  for (const ModelTensor& tensor : parameters) names.insert(tensor.name);
  EXPECT_EQ(names.size(), parameters.size());
}

TEST_F(Qwen3Decoder, HeadDimensionIsNotHiddenByHeads) {
  const ModelTensors parameters = model_named("qwen3_0_6b").parameters();
  EXPECT_EQ(parameters[1].value.size(0), 32);  // q_proj: 4 heads of 8
  EXPECT_EQ(parameters[1].value.size(1), 16);
  EXPECT_EQ(parameters[5].value.size(0), 8);  // q_norm
}

TEST_F(Qwen3Decoder, GivesEveryParameterAGradient) {
  const Qwen3 model = model_named("qwen3_0_6b");
  model.logits(some_tokens()).square().mean().backward();
  for (const ModelTensor& tensor : model.parameters()) {
    ASSERT_TRUE(tensor.value.grad().defined()) << tensor.name;
    EXPECT_GT(tensor.value.grad().abs().max().item<double>(), 0) << tensor.name;
  }
}

TEST_F(Qwen3Decoder, LooksAtNoLaterToken) {
  const Qwen3 model = model_named("qwen3_tiny_untied");
  const at::Tensor tokens = some_tokens();
  at::Tensor changed = tokens.clone();
  changed.narrow(1, 6, 6).fill_(99);
  const auto early = [&](const at::Tensor& t) { return model.logits(t).narrow(1, 0, 6); };
  EXPECT_TRUE(early(tokens).equal(early(changed)));
  EXPECT_FALSE(model.logits(tokens).equal(model.logits(changed)));
}

TEST_F(Qwen3Decoder, DependsOnTheSeedOnly) {
  const Qwen3 model = model_named("qwen3_tiny_untied");
  const Qwen3 again = model_named("qwen3_tiny_untied");
  EXPECT_TRUE(model.logits(some_tokens()).equal(again.logits(some_tokens())));
}

TEST_F(Qwen3Decoder, PerturbedCopySharesNothing) {
  const Qwen3 model = model_named("qwen3_tiny_untied");
  const Qwen3 copy = model.perturbed_copy(0.02, 8);
  EXPECT_EQ(copy.parameters().size(), model.parameters().size());
  EXPECT_FALSE(copy.parameters()[0].value.requires_grad());
  EXPECT_FALSE(copy.logits(some_tokens()).equal(model.logits(some_tokens())));
}

TEST_F(Qwen3Decoder, WidensWithHiddenSizeAndKeepsTheTopology) {
  const Qwen3 model = model_named("qwen3_0_6b", 64);
  EXPECT_EQ(model.parameters().size(), 310U);
  EXPECT_EQ(model.parameters()[0].value.size(1), 64);
}

TEST_F(Qwen3Decoder, RefusesAWidthThatHeadsDoNotDivide) {
  EXPECT_THROW(model_named("qwen3_0_6b", 18), std::invalid_argument);
}

}  // namespace
}  // namespace gradcheck::native
