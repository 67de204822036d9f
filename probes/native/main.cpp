// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

#include "model/json/zygote.h"
#include "probes/native/versions.h"
#include "probes/native/zygote.h"

namespace {

constexpr const char* kUsage =
    "usage: gradcheck-rank --zygote FD   fork ranks on orders from socket FD (used by gradcheck)\n"
    "       gradcheck-rank --version     print versions as JSON\n";

std::optional<int> descriptor_from(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 3) return std::nullopt;
  return value;
}

// So that no descriptor of ours ever takes the place of stdin, stdout or stderr.
void open_standard_descriptors() {
  while (true) {
    const int descriptor = open("/dev/null", O_RDWR);
    if (descriptor > STDERR_FILENO) {
      close(descriptor);
      return;
    }
    if (descriptor < 0) return;
  }
}

int serve(int control) {
  open_standard_descriptors();
  gradcheck::native::Zygote(control).serve();
  return 0;
}

int run(std::span<char*> arguments) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  if (command == "--version" && arguments.size() == 2) {
    std::puts(gradcheck::packet_to_text(gradcheck::native::ready_packet()).c_str());
    return 0;
  }
  if (command == "--zygote" && arguments.size() == 3) {
    if (const auto control = descriptor_from(arguments[2])) return serve(*control);
  }
  std::fputs(kUsage, stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gradcheck-rank: %s\n", error.what());
    return 3;
  }
}
