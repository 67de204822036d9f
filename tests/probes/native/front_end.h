// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "evidence/write/channel.h"
#include "probes/native/journal.h"

namespace gradcheck::native {

// A rank's journal, and the other end of its channel in the test's hands.
class FrontEnd {
 public:
  FrontEnd() : ends_(make_pair()), channel_(ends_[1]), journal_(channel_) {}
  ~FrontEnd() { ::close(ends_[0]); }
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  Journal& journal() { return journal_; }

  // What was sent since the last call.
  std::vector<nlohmann::json> lines() {
    channel_.flush();
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(ends_[0], buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    std::vector<nlohmann::json> parsed;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      parsed.push_back(nlohmann::json::parse(line));
    }
    return parsed;
  }

 private:
  static std::array<int, 2> make_pair() {
    std::array<int, 2> ends{};
    ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
    return ends;
  }

  std::array<int, 2> ends_;
  Channel channel_;
  Journal journal_;
};

}  // namespace gradcheck::native
