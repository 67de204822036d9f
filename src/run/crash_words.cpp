// SPDX-License-Identifier: Apache-2.0
#include "run/crash_words.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace gradcheck {
namespace {

constexpr std::string_view kStatusWords[] = {"exitcode: ", "exitcode  : ", "return code = "};
constexpr std::string_view kCrashWords[] = {"SIGABRT", "SIGSEGV", "signal 6", "signal 11"};

bool is_crash(int status) { return status < 0 && status != -SIGTERM && status != -SIGKILL; }

struct Statuses {
  bool own = false;    // some rank ended with a status that is not 0
  bool crash = false;  // some rank was killed by a signal of its own making
};

Statuses statuses_in(std::string_view errors) {
  Statuses found;
  for (const std::string_view word : kStatusWords) {
    for (std::size_t at = errors.find(word); at != std::string_view::npos;
         at = errors.find(word, at + 1)) {
      const std::string_view rest = errors.substr(at + word.size());
      int status = 0;
      std::from_chars(rest.data(), rest.data() + rest.size(), status);
      found.own |= status > 0;
      found.crash |= is_crash(status);
    }
  }
  return found;
}

}  // namespace

bool names_a_crash(std::string_view errors) {
  const Statuses statuses = statuses_in(errors);
  if (statuses.own) return false;
  return statuses.crash ||
         std::any_of(std::begin(kCrashWords), std::end(kCrashWords), [&](std::string_view word) {
           return errors.find(word) != std::string_view::npos;
         });
}

}  // namespace gradcheck
