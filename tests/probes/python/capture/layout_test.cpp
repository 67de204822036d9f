// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "numeric/kernel.h"
#include "support.h"

namespace gradcheck::capture {
namespace {

using Numbers = std::vector<std::int64_t>;

// Storage, and the elements that a view with these strides reads in logical order.
struct Strided {
  std::vector<std::byte> storage;
  std::vector<std::byte> logical;
};

Strided strided(const Numbers& sizes, const Numbers& strides, std::size_t element_size) {
  std::int64_t last = 0;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    last += (sizes[i] - 1) * strides[i];
    count *= sizes[i];
  }
  Strided made;
  made.storage.resize((static_cast<std::size_t>(last) + 1) * element_size);
  std::mt19937 random(5);
  for (std::byte& byte : made.storage) byte = static_cast<std::byte>(random());
  for (std::int64_t flat = 0; flat < count; ++flat) {
    std::int64_t rest = flat;
    std::int64_t offset = 0;
    for (std::size_t i = sizes.size(); i-- > 0; rest /= sizes[i]) {
      offset += rest % sizes[i] * strides[i];
    }
    const auto from = made.storage.begin() + offset * static_cast<std::int64_t>(element_size);
    made.logical.insert(made.logical.end(), from, from + static_cast<std::int64_t>(element_size));
  }
  return made;
}

class Layout : public CaptureTest {
 protected:
  std::string digest(const gradcheck_view& view) {
    std::array<char, 33> out{};
    EXPECT_EQ(gradcheck_digest(handle(), &view, out.data()), 0) << error();
    return out.data();
  }
  void expect_logical_order(const Numbers& sizes, const Numbers& strides, DType dtype) {
    const Strided made = strided(sizes, strides, size_of(dtype));
    const gradcheck_view view{made.storage.data(),
                              sizes.data(),
                              strides.data(),
                              static_cast<std::int32_t>(sizes.size()),
                              static_cast<std::int32_t>(dtype),
                              0};
    EXPECT_EQ(digest(view), to_hex(measure(dtype, made.logical).digest))
        << testing::PrintToString(sizes) << " by " << testing::PrintToString(strides) << " "
        << name_of(dtype);
    const std::int32_t slot = this->slot(("t" + std::to_string(tensors_++)).c_str());
    EXPECT_EQ(gradcheck_record(handle(), slot, 0, 0, 2, 1, &view, -1, 1), 0) << error();
    std::uint8_t written = 0;
    const std::string file = path(std::to_string(tensors_));
    EXPECT_EQ(gradcheck_payload(handle(), file.c_str(), 0, 0, 2, &slot, 1, 1 << 30, &written),
              safetensors_name_of(dtype).empty() ? 0 : 1);
  }

 private:
  int tensors_ = 0;
};

TEST_F(Layout, NonContiguousTensorsAreReadInLogicalOrder) {
  gradcheck_keep_budget(handle(), 1 << 30);
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64, DType::c128}) {
    expect_logical_order({3, 5}, {1, 3}, dtype);                // transposed
    expect_logical_order({7, 4}, {9, 2}, dtype);                // sliced
    expect_logical_order({2, 3, 4, 5}, {60, 1, 15, 3}, dtype);  // channels last
    expect_logical_order({4, 1, 6}, {0, 77, 0}, dtype);         // expanded
    expect_logical_order({2, 3, 4}, {24, 8, 2}, dtype);         // every second element
    expect_logical_order({300, 700}, {1, 300}, dtype);          // more than one buffer
    expect_logical_order({1, 40000}, {5, 2}, dtype);            // an axis longer than it
  }
}

TEST_F(Layout, RowMajorNeedsNoStrides) {
  const Tensor<float> values = wave(24);
  const Numbers sizes = {2, 1, 3, 4};
  const Numbers strides = {12, 999, 4, 1};
  gradcheck_view view{values.elements.data(), sizes.data(), nullptr, 4, 1, 0};
  const std::string plain = digest(view);
  view.strides = strides.data();
  EXPECT_EQ(digest(view), plain);
}

TEST_F(Layout, NonContiguousStatisticsEqualContiguousOnes) {
  gradcheck_send(handle(), kHello);
  const Tensor<float> values = wave(200 * 300);
  const Numbers sizes = {200, 300};
  const Numbers strides = {1, 200};
  const gradcheck_view view{values.elements.data(), sizes.data(), strides.data(), 2, 1, 0};
  Tensor<float> straight{std::vector<float>(200 * 300), sizes, DType::f32};
  for (std::size_t i = 0; i < 200; ++i) {
    for (std::size_t k = 0; k < 300; ++k) {
      straight.elements[i * 300 + k] = values.elements[i + 200 * k];
    }
  }
  gradcheck_record(handle(), slot("a"), 0, 0, 2, 1, &view, -1, 0);
  record(slot("b"), 0, Stage::reduced, straight);
  const EvidenceTable table = read_back();
  const Entry a = entry(table, 0, Stage::reduced, "a");
  const Entry b = entry(table, 0, Stage::reduced, "b");
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.l2, b.l2);
  EXPECT_EQ(*table.sketch(a), *table.sketch(b));
}

TEST_F(Layout, ZeroMeansEveryElementOfEitherSign) {
  const auto is_zero = [&](const auto& tensor) {
    const gradcheck_view view = tensor.view();
    return gradcheck_is_zero(handle(), &view);
  };
  EXPECT_EQ(is_zero(floats({0.F, -0.F, 0.F})), 1);
  EXPECT_EQ(is_zero(floats({})), 1);
  EXPECT_EQ(is_zero(floats({0, 0, 1e-45F})), 0);
  EXPECT_EQ(is_zero(floats({NAN})), 0);
  EXPECT_EQ(is_zero(Tensor<std::uint16_t>{{0x8000, 0, 0x8000}, {3}, DType::bf16}), 1);
  EXPECT_EQ(is_zero(Tensor<std::uint16_t>{{0, 0, 0, 0, 1}, {5}, DType::f16}), 0);
  EXPECT_EQ(is_zero(Tensor<double>{{0, -0.0}, {2}, DType::f64}), 1);
  EXPECT_EQ(is_zero(Tensor<std::int64_t>{{0}, {1}, DType::i64}), -1);
  Tensor<float> last = floats(std::vector<float>(100'003, -0.F));
  EXPECT_EQ(is_zero(last), 1);
  last.elements.back() = 1;
  EXPECT_EQ(is_zero(last), 0);
}

TEST_F(Layout, ZeroLooksOnlyAtTheElementsOfTheView) {
  std::vector<float> storage(1000, 1);
  for (std::size_t i = 0; i < storage.size(); i += 2) storage[i] = 0;
  const std::int64_t sizes = 500;
  std::int64_t stride = 2;
  const gradcheck_view view{storage.data(), &sizes, &stride, 1, 1, 0};
  EXPECT_EQ(gradcheck_is_zero(handle(), &view), 1);
  stride = 1;
  EXPECT_EQ(gradcheck_is_zero(handle(), &view), 0);
}

}  // namespace
}  // namespace gradcheck::capture
