// SPDX-License-Identifier: Apache-2.0
#include "probes/native/trainers/batch.h"

#include "model/tensor_stats.h"
#include "numeric/kernel.h"
#include "probes/native/snapshot/tensor_bytes.h"

namespace gradcheck::native {
namespace {

constexpr std::int64_t kPrompt = 4;
constexpr std::int64_t kMinCompletion = 4;
constexpr std::int64_t kMaxCompletion = 8;
constexpr std::int64_t kLength = kPrompt + kMaxCompletion;

std::uint64_t mix(std::uint64_t x) {  // finaliser of splitmix64 (Steele, Lea, Flood 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class Stream {
 public:
  explicit Stream(const BatchKey& key) : state_(mix(key.seed + kGamma)) {
    for (const auto part : {static_cast<std::int64_t>(key.rank), key.step, key.micro}) {
      state_ = mix(state_ + kGamma * (static_cast<std::uint64_t>(part) + 1));
    }
  }
  std::int64_t below(std::int64_t limit) {
    state_ += kGamma;
    return static_cast<std::int64_t>(mix(state_) % static_cast<std::uint64_t>(limit));
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15U;
  std::uint64_t state_;
};

struct Texts {
  std::vector<std::vector<std::int64_t>> prompts;
  std::vector<std::vector<std::int64_t>> completions;
};

// Token 0 is padding and never drawn.
std::vector<std::int64_t> draw_text(Stream& stream, std::int64_t length, std::int64_t vocabulary) {
  std::vector<std::int64_t> text;
  for (std::int64_t i = 0; i < length; ++i) text.push_back(1 + stream.below(vocabulary - 1));
  return text;
}

Texts draw_texts(Stream& stream, std::int64_t size, std::int64_t vocabulary) {
  Texts texts;
  for (std::int64_t row = 0; row < size; ++row) {
    texts.prompts.push_back(draw_text(stream, kPrompt, vocabulary));
    const std::int64_t length = kMinCompletion + stream.below(kMaxCompletion - kMinCompletion + 1);
    texts.completions.push_back(draw_text(stream, length, vocabulary));
  }
  return texts;
}

// Prompt i with completion i − shift, around the end.
Sequences join(const Texts& texts, std::size_t shift) {
  const std::size_t size = texts.prompts.size();
  Sequences out;
  out.tokens = at::zeros({static_cast<std::int64_t>(size), kLength}, at::kLong);
  out.completed = at::zeros({static_cast<std::int64_t>(size), kLength - 1}, at::kBool);
  auto* token = out.tokens.mutable_data_ptr<std::int64_t>();
  auto* completed = out.completed.mutable_data_ptr<bool>();
  for (std::size_t row = 0; row < size; ++row, token += kLength, completed += kLength - 1) {
    const auto& completion = texts.completions[(row + size - shift) % size];
    std::copy(texts.prompts[row].begin(), texts.prompts[row].end(), token);
    std::copy(completion.begin(), completion.end(), token + kPrompt);
    std::fill_n(completed + kPrompt - 1, completion.size(), true);
  }
  return out;
}

at::Tensor draw_labels(Stream& stream, std::int64_t size) {
  at::Tensor labels = at::empty({size}, at::kBool);
  const std::int64_t first = stream.below(2);
  for (std::int64_t row = 0; row < size; ++row) {
    labels.mutable_data_ptr<bool>()[row] = (row + first) % 2 == 0;
  }
  return labels;
}

}  // namespace

PreferenceBatch make_preference_batch(const BatchKey& key, std::int64_t size,
                                      std::int64_t vocabulary) {
  Stream stream(key);
  const Texts texts = draw_texts(stream, size, vocabulary);
  return {join(texts, 0), join(texts, 1), draw_labels(stream, size)};
}

Sequences make_sequences(const BatchKey& key, std::int64_t size, std::int64_t vocabulary) {
  Stream stream(key);
  return join(draw_texts(stream, size, vocabulary), 0);
}

Sequences make_groups(const BatchKey& key, std::int64_t size, std::int64_t group,
                      std::int64_t vocabulary) {
  Stream stream(key);
  Texts texts = draw_texts(stream, size, vocabulary);
  const auto rows = static_cast<std::size_t>(group);
  for (std::size_t i = 0; i < texts.prompts.size(); ++i) {
    texts.prompts[i] = texts.prompts[i - i % rows];
  }
  return join(texts, 0);
}

at::Tensor draw_numbers(const BatchKey& key, std::int64_t size) {
  constexpr std::int64_t kGrid = 1 << 20;
  Stream stream({~key.seed, key.rank, key.step, key.micro});
  at::Tensor numbers = at::empty({size}, at::kFloat);
  for (std::int64_t i = 0; i < size; ++i) {
    const auto drawn = static_cast<float>(stream.below(2 * kGrid) - kGrid);
    numbers.mutable_data_ptr<float>()[i] = drawn / kGrid;
  }
  return numbers;
}

std::uint64_t draw_seed(const BatchKey& key, std::int64_t purpose) {
  Stream stream(
      {key.seed + static_cast<std::uint64_t>(purpose) + 1, key.rank, key.step, key.micro});
  return static_cast<std::uint64_t>(stream.below(std::int64_t{1} << 62));
}

Sequences make_pairs(const BatchKey& key, std::int64_t size, std::int64_t vocabulary) {
  Stream stream(key);
  Texts texts = draw_texts(stream, size, vocabulary);
  const auto pairs = static_cast<std::size_t>(size / 2);
  for (std::size_t i = 0; i < pairs; ++i) texts.prompts[pairs + i] = texts.prompts[i];
  return join(texts, 0);
}

std::string digest_of(const std::vector<at::Tensor>& tensors) {
  Kernel kernel(DType::u8, KernelMode::digest_only);
  for (const at::Tensor& tensor : tensors) kernel.update(bytes_of(tensor));
  return to_hex(kernel.finish().digest);
}

std::string digest_of(const Sequences& sequences) {
  return digest_of(std::vector{sequences.tokens, sequences.completed});
}

std::string digest_of(const PreferenceBatch& batch) {
  return digest_of(std::vector{batch.sequences.tokens, batch.sequences.completed, batch.kl.tokens,
                               batch.kl.completed, batch.desirable});
}

}  // namespace gradcheck::native
