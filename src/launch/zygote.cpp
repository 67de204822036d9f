// SPDX-License-Identifier: Apache-2.0
#include "launch/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "launch/clock.h"
#include "model/errors.h"
#include "model/json/zygote.h"

extern char** environ;

namespace gradcheck {
namespace {

constexpr int kZygoteDescriptor = 3;
constexpr double kGoodbyeSeconds = 2;

[[noreturn]] void fail(const std::string& what) {
  throw InfrastructureError(what + ": " + std::strerror(errno));
}

std::pair<Descriptor, Descriptor> socket_pair(int type) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::pair<Descriptor, Descriptor> pipe_pair() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// One packet with descriptors attached (unix(7), SCM_RIGHTS).
void send_with_descriptors(int socket, std::string text, const std::vector<int>& descriptors) {
  iovec data{text.data(), text.size()};
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) fail("cannot reach the rank zygote");
}

// The zygote starts with default signal handling: the front blocks what it reads by signalfd.
class SpawnSettings {
 public:
  SpawnSettings(int control, int log) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, log, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, control, kZygoteDescriptor);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);  // ignored here
    posix_spawnattr_setsigdefault(&attributes_, &pipe);
    // Its own group: Ctrl-C reaches the front alone, which then ends the ranks in order.
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Zygote::Zygote(const std::string& binary, double spawn_timeout_s, int interrupt)
    : timeout_s_(spawn_timeout_s), interrupt_(interrupt) {
  start(binary);
  try {
    await_ready(binary);
  } catch (...) {
    end();
    throw;
  }
}

Zygote::~Zygote() { end(); }

void Zygote::await_ready(const std::string& binary) {
  const std::optional<ZygotePacket> packet = receive(timeout_s_);
  if (packet && std::holds_alternative<ReadyPacket>(*packet)) {
    ready_ = std::get<ReadyPacket>(*packet);
    return;
  }
  throw InfrastructureError(binary + " did not start: " + last_words());
}

void Zygote::start(const std::string& binary) {
  auto [mine, theirs] = socket_pair(SOCK_SEQPACKET);
  log_ = Descriptor(::memfd_create("gradcheck-zygote", MFD_CLOEXEC));
  if (!log_.is_open()) fail("memfd_create");
  control_ = std::move(mine);
  const SpawnSettings settings(theirs.get(), log_.get());
  std::string option = "--zygote";
  std::string descriptor = std::to_string(kZygoteDescriptor);
  std::string program = binary;
  std::array<char*, 4> argv = {program.data(), option.data(), descriptor.data(), nullptr};
  errno = ::posix_spawn(&pid_, binary.c_str(), settings.actions(), settings.attributes(),
                        argv.data(), environ);
  if (errno != 0) {
    pid_ = -1;
    fail("cannot start " + binary);
  }
}

void Zygote::end() {
  control_.reset();  // the zygote's sign to kill its ranks and end
  if (pid_ < 0) return;
  const auto deadline = after(kGoodbyeSeconds);
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (Clock::now() > deadline) ::kill(pid_, SIGKILL);
    ::poll(nullptr, 0, 2);
  }
}

std::optional<ZygotePacket> Zygote::receive(double timeout_s) {
  const auto deadline = after(timeout_s);
  std::string buffer(kMaxPacketBytes, '\0');
  for (;;) {
    std::array<pollfd, 2> waiting = {{{control_.get(), POLLIN, 0}, {interrupt_, POLLIN, 0}}};
    const int events = ::poll(waiting.data(), waiting.size(), milliseconds_until(deadline));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0 || waiting[0].revents == 0) return std::nullopt;
    const ssize_t size = ::recv(control_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) throw InfrastructureError("the rank zygote has died: " + last_words());
    return packet_from_text(std::string_view(buffer).substr(0, static_cast<std::size_t>(size)));
  }
}

std::string Zygote::last_words() const {
  constexpr off_t kMost = 2000;
  const off_t end = ::lseek(log_.get(), 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::min(end, kMost)), '\0');
  const ssize_t got =
      ::pread(log_.get(), text.data(), text.size(), end - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "it said nothing" : text;
}

ForkedRanks Zygote::fork_ranks(int ranks) {
  if (ranks > kMaxForkRanks) {
    throw InfrastructureError("at most " + std::to_string(kMaxForkRanks) + " native ranks");
  }
  ForkedRanks forked;
  std::vector<Descriptor> theirs;
  for (int rank = 0; rank < ranks; ++rank) {
    auto [mine, other] = socket_pair(SOCK_STREAM);
    forked.channels.push_back(std::move(mine));
    theirs.push_back(std::move(other));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    auto [read_end, write_end] = pipe_pair();
    forked.errors.push_back(std::move(read_end));
    theirs.push_back(std::move(write_end));
  }
  std::vector<int> numbers;
  for (const Descriptor& descriptor : theirs) numbers.push_back(descriptor.get());
  send_with_descriptors(control_.get(), packet_to_text(ForkPacket{ranks}), numbers);
  const std::optional<ZygotePacket> answer = receive(timeout_s_);
  if (!answer) throw InfrastructureError("the rank zygote did not fork in time");
  if (const auto* refused = std::get_if<RefusedPacket>(&*answer)) {
    throw InfrastructureError("the rank zygote refused to fork: " + refused->text);
  }
  if (!std::holds_alternative<StartedPacket>(*answer)) {
    throw InfrastructureError("the rank zygote answered something else than `started`");
  }
  forked.pids = std::get<StartedPacket>(*answer).pids;
  const std::set<std::int64_t> distinct(forked.pids.begin(), forked.pids.end());
  const bool plausible = forked.pids.size() == static_cast<std::size_t>(ranks) &&
                         distinct.size() == forked.pids.size() && *distinct.begin() > 1;
  if (!plausible) throw InfrastructureError("the rank zygote named impossible processes");
  return forked;
}

std::optional<ExitPacket> Zygote::take_exit() {
  const std::optional<ZygotePacket> packet = receive(0);
  if (!packet) return std::nullopt;
  if (const auto* exit = std::get_if<ExitPacket>(&*packet)) return *exit;
  throw InfrastructureError("the rank zygote sent something else than `exit`");
}

}  // namespace gradcheck
