// SPDX-License-Identifier: Apache-2.0
#include "probes/python/capture/endpoint.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "model/errors.h"

namespace gradcheck::capture {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path, int error) {
  throw InfrastructureError(std::string(what) + " " + path + ": " + std::strerror(error));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw std::invalid_argument("a socket's path has 1 to 107 bytes: " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// connect() waits no longer than a send may (unix(7), the backlog is full).
void limit_waiting(int descriptor, double seconds) {
  timeval limit{};
  limit.tv_sec = static_cast<time_t>(seconds);
  limit.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  if (limit.tv_sec == 0 && limit.tv_usec == 0) limit.tv_usec = 1;  // 0 would be no limit
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

int connect_to(int descriptor, const sockaddr_un& address) {
  for (;;) {
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(descriptor, generic, sizeof address) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

// Takes `descriptor` away from the standard streams.
int above_standard_streams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return moved;
}

}  // namespace

int connect_socket(const std::string& path, double timeout_s) {
  if (!(timeout_s > 0) || timeout_s > 1e6) {
    throw std::invalid_argument("the send timeout is not between 0 and 1,000,000 s");
  }
  const sockaddr_un address = address_of(path);
  const int descriptor = above_standard_streams(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (descriptor < 0) fail("cannot make a socket for", path, errno);
  limit_waiting(descriptor, timeout_s);
  const int error = connect_to(descriptor, address);
  if (error == 0) return descriptor;
  ::close(descriptor);
  fail("cannot connect to", path, error);
}

int create_file(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const int descriptor = above_standard_streams(::open(path.c_str(), kFlags, 0644));
  if (descriptor < 0) fail("cannot create", path, errno);
  return descriptor;
}

}  // namespace gradcheck::capture
