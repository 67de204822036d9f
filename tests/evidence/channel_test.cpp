// SPDX-License-Identifier: Apache-2.0
#include "evidence/write/channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
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

TEST(Channel, PollTellsNothingYetFromGone) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  EXPECT_EQ(channel.poll(0), std::nullopt);
  EXPECT_EQ(channel.poll(0.01), std::nullopt);
  ASSERT_EQ(::write(pair.ends[1], "one\ntwo\n", 8), 8);
  EXPECT_EQ(channel.poll(0), "one");
  ::close(pair.ends[1]);
  EXPECT_EQ(channel.poll(0), "two") << "what was said before still counts";
  EXPECT_THROW(channel.poll(0), InfrastructureError);
}

TEST(Channel, AnEndlessLineFromTheFrontIsAnError) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  const std::string text(64 * 1024, 'x');
  const auto flood = [&] {
    for (int i = 0; i < 100; ++i) {
      if (::send(pair.ends[1], text.data(), text.size(), MSG_DONTWAIT) < 0) break;
      channel.poll(0);
    }
  };
  EXPECT_THROW(flood(), InfrastructureError);
  ::close(pair.ends[1]);
}

TEST(Channel, ObjectsAreNumberedAmongTheOtherLines) {
  const Pair pair;
  Channel channel(pair.ends[0]);
  channel.send(EventRecord{});
  channel.send_object(R"({"type":"new"})");
  channel.send_object("{ }");
  channel.send_bye(0);
  const std::string text = read_some(pair.ends[1]);
  EXPECT_THAT(text, testing::HasSubstr("{\"seq\":1,\"type\":\"new\"}\n{\"seq\":2 }\n"));
  EXPECT_THAT(text, testing::HasSubstr(R"("lines":3})"));
  ::close(pair.ends[1]);
}

TEST(Channel, AFrontThatDoesNotReadIsGivenUpWhereALimitIsSet) {
  const Pair pair;
  Channel channel(pair.ends[0], 0.05);
  EventRecord note;
  note.text = std::string(8000, 'x');
  const auto flood = [&] {
    for (int i = 0; i < 10'000; ++i) channel.send(note);
  };
  EXPECT_THROW(flood(), InfrastructureError);
  ::close(pair.ends[1]);
}

TEST(Channel, LinesMayGoToAFile) {
  std::FILE* file = std::tmpfile();
  {
    Channel channel(::dup(::fileno(file)));
    EXPECT_EQ(channel.poll(10), std::nullopt) << "a file says nothing, so nobody waits for it";
    channel.send_bye(0);
  }
  std::rewind(file);
  std::array<char, 100> line{};
  EXPECT_STREQ(std::fgets(line.data(), line.size(), file),
               "{\"type\":\"bye\",\"seq\":0,\"status\":0,\"lines\":0}\n");
  std::fclose(file);
}

TEST(Channel, AFullDiskIsAnError) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "this system has no /dev/full";
  Channel channel(full);
  EXPECT_THROW(channel.send_bye(0), InfrastructureError);
}

}  // namespace
}  // namespace gradcheck
