// SPDX-License-Identifier: Apache-2.0
#include "probes/native/packet_socket.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "model/errors.h"
#include "model/json/zygote.h"

namespace gradcheck::native {
namespace {

constexpr std::size_t kMaxDescriptors = 2 * kMaxForkRanks;

[[noreturn]] void fail(const char* what) {
  throw InfrastructureError(std::string("zygote: ") + what + ": " + std::strerror(errno));
}

std::vector<int> descriptors_of(msghdr& message) {
  std::vector<int> out;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    out.resize(out.size() + count);
    std::memcpy(out.data() + out.size() - count, CMSG_DATA(part), count * sizeof(int));
  }
  return out;
}

}  // namespace

std::optional<Received> receive_packet(int socket) {
  std::array<char, kMaxPacketBytes> text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  iovec span{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return std::nullopt;
  if (got < 0) fail("cannot receive");
  return Received{std::string(text.data(), static_cast<std::size_t>(got)), descriptors_of(message),
                  (message.msg_flags & MSG_CTRUNC) != 0};
}

bool send_packet(int socket, const ZygotePacket& packet) {
  const std::string text = packet_to_text(packet);
  ssize_t sent = -1;
  do {
    sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return true;
  if (errno == EPIPE || errno == ECONNRESET) return false;
  fail("cannot send");
}

}  // namespace gradcheck::native
