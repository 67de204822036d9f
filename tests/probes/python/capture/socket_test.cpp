// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "support.h"

namespace gradcheck::capture {
namespace {

using testing::HasSubstr;

class Socket : public CaptureTest {
 protected:
  void SetUp() override {
    CaptureTest::SetUp();
    front_.emplace(path("socket"));
    open(5);
  }
  void open(double send_timeout_s) {
    rank_.reset(gradcheck_open_socket(path("socket").c_str(), send_timeout_s));
    ASSERT_NE(rank_, nullptr) << gradcheck_error(nullptr);
    front_->accept();
  }
  gradcheck_capture* rank() const { return rank_.get(); }
  std::string rank_error() const { return gradcheck_error(rank()); }
  // Length, or what gradcheck_receive gave instead.
  std::int32_t receive(double timeout_s, std::size_t capacity = 100) {
    std::vector<char> out(capacity);
    const auto got =
        gradcheck_receive(rank(), timeout_s, out.data(), static_cast<std::int32_t>(capacity));
    if (got > 0) received_ = out.data();
    return got;
  }

  std::optional<Front> front_;
  Handle rank_;
  std::string received_;
};

TEST_F(Socket, CarriesLinesBothWays) {
  EXPECT_EQ(gradcheck_send(rank(), kHello), 0);
  EXPECT_EQ(receive(0), 0) << "nothing has come, and the hello is on its way";
  EXPECT_THAT(front_->hear(1), HasSubstr(R"({"seq":0,"type":"hello")"));
  front_->say("{\"type\":\"go\"}\n{\"type\":");
  EXPECT_GT(receive(5), 0);
  EXPECT_EQ(received_, R"({"type":"go"})");
  EXPECT_EQ(receive(0), 0);
  front_->say("\"want\"}\n");
  EXPECT_EQ(receive(5), 15);
  EXPECT_EQ(received_, R"({"type":"want"})");
}

TEST_F(Socket, ByeIsTheLastLine) {
  gradcheck_send(rank(), kHello);
  EXPECT_EQ(gradcheck_bye(rank(), 0), 0);
  EXPECT_EQ(gradcheck_send(rank(), kHello), -1);
  EXPECT_THAT(rank_error(), HasSubstr("bye"));
  EXPECT_THAT(front_->hear(9), HasSubstr(R"("type":"bye","seq":1,"status":0,"lines":1})"));
}

TEST_F(Socket, ALineThatDoesNotFitIsDroppedAndTheNextOneComes) {
  front_->say(std::string(200, 'x') + "\nshort\n");
  EXPECT_EQ(receive(5), -1);
  EXPECT_THAT(rank_error(), HasSubstr("does not fit"));
  EXPECT_EQ(receive(5), 5);
  EXPECT_EQ(receive(0, 0), 0) << "room for nothing is enough where nothing came";
}

TEST_F(Socket, AFrontThatHasGoneClosesTheHandle) {
  front_->hang_up();
  EXPECT_EQ(receive(5), -1);
  EXPECT_THAT(rank_error(), HasSubstr("the front has gone"));
  EXPECT_EQ(gradcheck_flush(rank()), -1);
  EXPECT_EQ(gradcheck_slot(rank(), "Net", "weight", nullptr), -1);
  EXPECT_THAT(rank_error(), HasSubstr("the front has gone")) << "the first reason stays";
}

// SIGPIPE would end the job.
TEST_F(Socket, SendingToAFrontThatHasGoneFailsAndRaisesNoSignal) {
  front_->hang_up();
  EXPECT_EQ(gradcheck_send(rank(), kHello), 0) << "buffered";
  EXPECT_EQ(gradcheck_flush(rank()), -1);
  EXPECT_THAT(rank_error(), HasSubstr("cannot send"));
}

TEST_F(Socket, LaterCallsOnAClosedHandleReadNoTensor) {
  front_->hang_up();
  const std::int32_t slot = gradcheck_slot(rank(), "Net", "weight", nullptr);
  gradcheck_send(rank(), kHello);
  gradcheck_flush(rank());
  const std::int64_t size = std::int64_t{1} << 40;
  const gradcheck_view view{&size, &size, nullptr, 1, 1, 0};  // reading it would crash
  EXPECT_EQ(gradcheck_record(rank(), slot, 0, 0, 2, 1, &view, -1, 1), -1);
  EXPECT_EQ(gradcheck_local(rank(), slot, &view, 1), -1);
}

TEST_F(Socket, AFrontThatDoesNotReadIsGivenUp) {
  open(0.2);
  const std::string note =
      R"({"type":"event","event":"note","text":")" + std::string(8000, 'x') + "\"}";
  int sent = 0;
  while (sent < 10'000 && gradcheck_send(rank(), note.c_str()) == 0) ++sent;
  EXPECT_LT(sent, 10'000);
  EXPECT_THAT(rank_error(), HasSubstr("the front does not read"));
  EXPECT_EQ(gradcheck_send(rank(), note.c_str()), -1);
}

TEST_F(Socket, AFrontThatReadsLateIsWaitedFor) {
  const std::string note =
      R"({"type":"event","event":"note","text":")" + std::string(8000, 'x') + "\"}";
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    front_->hear(200);
  });
  for (int i = 0; i < 200; ++i) EXPECT_EQ(gradcheck_send(rank(), note.c_str()), 0);
  EXPECT_EQ(gradcheck_flush(rank()), 0);
  late.join();
}

TEST_F(Socket, AChildOfTheJobSendsNothing) {
  gradcheck_send(rank(), kHello);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = gradcheck_send(rank(), kHello) == -1 && gradcheck_flush(rank()) == -1 &&
                         std::string(gradcheck_error(rank())).find("fork") != std::string::npos;
    gradcheck_close(rank_.release());
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(gradcheck_bye(rank(), 0), 0);
  EXPECT_THAT(front_->hear(9), testing::EndsWith("\"lines\":1}\n"));
}

TEST_F(Socket, ThreadsShareAHandle) {
  std::thread reader([&] { front_->hear(4001); });
  gradcheck_send(rank(), kHello);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "w" + std::to_string(t);
      const std::int32_t slot = gradcheck_slot(rank(), "Net", name.c_str(), nullptr);
      const Tensor<float> values = wave(40);
      const gradcheck_view view = values.view();
      for (int step = 0; step < 1000; ++step) {
        EXPECT_EQ(gradcheck_record(rank(), slot, step, 0, 2, 1, &view, -1, 1), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gradcheck_flush(rank()), 0);
  reader.join();
  EXPECT_GT(gradcheck_seconds(rank()), 0);
}

TEST_F(CaptureTest, AnEndpointThatIsNotThereSaysWhy) {
  EXPECT_EQ(gradcheck_open_socket(path("none").c_str(), 1), nullptr);
  EXPECT_THAT(gradcheck_error(nullptr), HasSubstr("cannot connect to"));
  EXPECT_EQ(gradcheck_open_socket(std::string(200, 'x').c_str(), 1), nullptr);
  EXPECT_THAT(gradcheck_error(nullptr), HasSubstr("107"));
  EXPECT_EQ(gradcheck_open_file(path("lines").c_str()), nullptr);
  EXPECT_THAT(gradcheck_error(nullptr), HasSubstr("File exists"));
}

// A full backlog makes connect() wait.
TEST_F(CaptureTest, AFrontThatDoesNotAcceptIsGivenUp) {
  const Front front(path("socket"));
  std::vector<Handle> waiting;
  for (int i = 0; i < 10; ++i) {
    waiting.emplace_back(gradcheck_open_socket(path("socket").c_str(), 0.1));
    if (waiting.back() == nullptr) return;
  }
  FAIL() << "ten connections fit into a backlog of one";
}

// A job that has closed its standard streams must not print into the evidence.
TEST_F(CaptureTest, TheChannelIsNeverAStandardStream) {
  const int saved = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  const Handle file(gradcheck_open_file(path("other").c_str()));
  EXPECT_NE(file, nullptr);
  EXPECT_EQ(::fcntl(STDIN_FILENO, F_GETFD), -1);
  if (saved >= 0) ::dup2(saved, STDIN_FILENO);
  if (saved >= 0) ::close(saved);
}

}  // namespace
}  // namespace gradcheck::capture
