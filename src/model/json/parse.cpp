// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <set>

#include "model/errors.h"
#include "model/json/strict.h"

namespace gradcheck {
namespace {

using Event = Json::parse_event_t;

// Watches the parser's events for what a finished document no longer shows: keys given twice, and
// nesting so deep that nobody should build it.
class ParseGuard {
 public:
  explicit ParseGuard(const std::string& file) : file_(file) {}

  void see(Event event, const Json& parsed) {
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        return open(event == Event::array_start);
      case Event::object_end:
      case Event::array_end:
        frames_.pop_back();
        return next_element();
      case Event::key:
        return add_key(parsed.get_ref<const std::string&>());
      case Event::value:
        return next_element();
    }
  }

 private:
  struct Frame {  // an object or array that is open
    bool is_array = false;
    std::size_t index = 0;
    std::string key;
    std::set<std::string> keys;
  };

  void open(bool is_array) {
    if (frames_.size() == static_cast<std::size_t>(kMaxJsonDepth)) {
      fail("nested deeper than " + std::to_string(kMaxJsonDepth));
    }
    frames_.push_back({is_array, 0, "", {}});
  }

  void next_element() {
    if (!frames_.empty()) ++frames_.back().index;
  }

  void add_key(const std::string& key) {
    frames_.back().key = key;
    if (!frames_.back().keys.insert(key).second)
      fail("the key " + in_quotes(key) + " is given twice");
  }

  [[noreturn]] void fail(const std::string& message) const {
    std::string pointer;
    for (const Frame& frame : frames_) {
      append_to_pointer(pointer, frame.is_array ? std::to_string(frame.index) : frame.key);
    }
    throw ScenarioError(file_, pointer, message);
  }

  const std::string& file_;
  std::vector<Frame> frames_;
};

// nlohmann's message without its own tag: "parse error at line 3, column 7: …".
std::string readable(std::string message) {
  const std::size_t tag = message.find("] ");
  if (message.starts_with("[json.exception") && tag != std::string::npos) message.erase(0, tag + 2);
  constexpr std::size_t kShown = 200;
  if (message.size() > kShown) message = message.substr(0, kShown) + "...";
  for (char& c : message) c = c < ' ' || c > '~' ? '?' : c;
  return message;
}

}  // namespace

Json parse_strictly(std::string_view text, const std::string& file) {
  if (text.size() > kMaxJsonBytes) {
    throw ScenarioError(file, "", "larger than " + std::to_string(kMaxJsonBytes) + " bytes");
  }
  ParseGuard guard(file);
  const auto callback = [&guard](int, Event event, Json& parsed) {
    guard.see(event, parsed);
    return true;
  };
  try {
    return Json::parse(text, callback);
  } catch (const nlohmann::json::exception& error) {
    throw ScenarioError(file, "", "not JSON: " + readable(error.what()));
  }
}

}  // namespace gradcheck
