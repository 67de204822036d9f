// SPDX-License-Identifier: Apache-2.0
#include "reports/numbers.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace gradcheck {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Numbers, Short) {
  EXPECT_EQ(short_number(0.0594), "5.9e-02");
  EXPECT_EQ(short_number(0.0), "0");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(5e-324), "4.9e-324");
  EXPECT_EQ(short_number(kNaN), "nan");
  EXPECT_EQ(short_number(-kInfinity), "-inf");
  EXPECT_EQ(short_number(std::optional<double>()), "?");
}

TEST(Numbers, Shares) {
  EXPECT_EQ(share_number(0.21), "0.2");
  EXPECT_EQ(share_number(0.034), "0.03");
  EXPECT_EQ(share_number(0.0004), "4.0e-04");
  EXPECT_EQ(share_number(12.55), "12.6");
  EXPECT_EQ(share_number(3.4e6), "3.4e+06");
  EXPECT_EQ(share_number(kNaN), "nan");
}

TEST(Numbers, Seconds) {
  EXPECT_EQ(seconds(0.04), "0.0 s");
  EXPECT_EQ(seconds(59.9), "59.9 s");
  EXPECT_EQ(seconds(119.7), "2 min 0 s");
  EXPECT_EQ(seconds(200), "3 min 20 s");
  EXPECT_EQ(seconds(kNaN), "? s");
}

TEST(Numbers, BytesAndPlurals) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(2'384'199'680), "2.4 GB");
  EXPECT_EQ(bytes_text(1e18), "1000000.0 TB");
  EXPECT_EQ(bytes_text(kInfinity), "inf B");
  EXPECT_EQ(plural(1, "rank"), "1 rank");
  EXPECT_EQ(plural(0, "rank"), "0 ranks");
}

}  // namespace
}  // namespace gradcheck
