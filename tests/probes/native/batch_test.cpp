// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace gradcheck::native {
namespace {

std::string digest(const BatchKey& key) { return digest_of(make_preference_batch(key, 4, 128)); }

TEST(Batch, IsAFunctionOfItsKeyOnly) { EXPECT_EQ(digest({7, 1, 2, 3}), digest({7, 1, 2, 3})); }

TEST(Batch, DiffersInEveryPartOfTheKey) {
  const std::set<std::string> digests = {digest({7, 0, 0, 0}), digest({8, 0, 0, 0}),
                                         digest({7, 1, 0, 0}), digest({7, 0, 1, 0}),
                                         digest({7, 0, 0, 1})};
  EXPECT_EQ(digests.size(), 5U);
}

TEST(Batch, MixesLabelsInEveryBatch) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto batch = make_preference_batch({seed, 0, 0, 0}, 2, 128);
    EXPECT_EQ(batch.desirable.sum().item<std::int64_t>(), 1);
  }
}

TEST(Batch, ShiftsKlCompletionsByOneInsideTheBatch) {
  const auto batch = make_preference_batch({7, 0, 0, 0}, 4, 128);
  const auto lengths = batch.sequences.completed.sum(1);
  EXPECT_TRUE(batch.kl.completed.sum(1).equal(lengths.roll(1)));
  EXPECT_TRUE(batch.kl.tokens.narrow(1, 0, 4).equal(batch.sequences.tokens.narrow(1, 0, 4)));
  EXPECT_TRUE(
      batch.kl.tokens.narrow(1, 4, 8).equal(batch.sequences.tokens.narrow(1, 4, 8).roll(1, 0)));
}

TEST(Batch, PairsShareTheirPrompt) {
  const Sequences pairs = make_pairs({7, 0, 0, 0}, 6, 128);
  const auto prompts = pairs.tokens.narrow(1, 0, 4);
  EXPECT_TRUE(prompts.narrow(0, 0, 3).equal(prompts.narrow(0, 3, 3)));
  EXPECT_FALSE(pairs.tokens.narrow(0, 0, 3).equal(pairs.tokens.narrow(0, 3, 3)));
}

TEST(Batch, GroupsShareTheirPrompt) {
  const Sequences groups = make_groups({7, 0, 0, 0}, 4, 2, 128);
  const auto prompts = groups.tokens.narrow(1, 0, 4);
  EXPECT_TRUE(prompts[0].equal(prompts[1]));
  EXPECT_TRUE(prompts[2].equal(prompts[3]));
  EXPECT_FALSE(prompts[1].equal(prompts[2]));
}

TEST(Batch, NumbersAreAFunctionOfTheKeyAndLieAroundZero) {
  const at::Tensor numbers = draw_numbers({7, 0, 0, 0}, 1000);
  EXPECT_TRUE(numbers.equal(draw_numbers({7, 0, 0, 0}, 1000)));
  EXPECT_FALSE(numbers.equal(draw_numbers({7, 1, 0, 0}, 1000)));
  EXPECT_LE(numbers.abs().max().item<double>(), 1);
  EXPECT_LT(std::abs(numbers.mean().item<double>()), 0.1);
}

TEST(Batch, NeverPutsPaddingIntoACompletion) {
  const auto batch = make_preference_batch({7, 0, 0, 0}, 16, 3);
  const auto next = batch.sequences.tokens.narrow(1, 1, 11);
  EXPECT_TRUE(next.masked_select(batch.sequences.completed).gt(0).all().item<bool>());
}

}  // namespace
}  // namespace gradcheck::native
