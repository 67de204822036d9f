// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "model/errors.h"

namespace gradcheck {
namespace {

struct Pair {
  Pair() { ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()); }
  std::array<int, 2> ends{};
};

std::string read_some(int descriptor) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "";
}

TEST(Channel, NumbersItsLinesAndCountsThemInBye) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  channel.send(GroupRecord{"world", {0}});
  channel.send(EventRecord{});
  channel.send_bye(0);
  const std::string text = read_some(pair.ends[1]);
  EXPECT_THAT(text, testing::HasSubstr(R"("type":"group","seq":0)"));
  EXPECT_THAT(text, testing::HasSubstr(R"("type":"bye","seq":2,"status":0,"lines":2)"));
  ::close(pair.ends[1]);
}

TEST(Channel, ReceivesWholeLinesHoweverTheyAreCut) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  ASSERT_EQ(::write(pair.ends[1], "one\ntw", 6), 6);
  EXPECT_EQ(channel.receive(5), "one");
  ASSERT_EQ(::write(pair.ends[1], "o\n", 2), 2);
  EXPECT_EQ(channel.receive(5), "two");
  ::close(pair.ends[1]);
  EXPECT_EQ(channel.receive(5), std::nullopt);
}

TEST(Channel, AFrontThatHasGoneIsAnErrorNotASignal) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  ::close(pair.ends[1]);
  channel.send(EventRecord{});
  EXPECT_THROW(channel.flush(), InfrastructureError);
}

TEST(Channel, ASilentFrontIsAnErrorNotAHang) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  EXPECT_THROW(channel.receive(0.01), InfrastructureError);
  ::close(pair.ends[1]);
}

}  // namespace
}  // namespace gradcheck
