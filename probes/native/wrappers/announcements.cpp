// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/announcements.h"

#include <numeric>
#include <utility>

namespace gradcheck::native {
namespace {

class Inside {
 public:
  explicit Inside(bool& inside) : inside_(inside) { inside_ = true; }
  ~Inside() { inside_ = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool& inside_;
};

}  // namespace

void announce_sharding(const std::string& model, const std::string& kind, const std::string& hook,
                       const Group& group, Journal& journal) {
  GroupRecord ranks;
  ranks.name = "world";
  ranks.ranks.resize(static_cast<std::size_t>(group.processes->getSize()));
  std::iota(ranks.ranks.begin(), ranks.ranks.end(), 0);
  journal.send(ranks);
  WrapperRecord wrapper;
  wrapper.model = model;
  wrapper.kind = kind;
  wrapper.group = ranks.name;
  wrapper.hook = hook == "none" ? "" : hook;
  wrapper.buffers = "undeclared";  // none of them broadcasts buffers before a forward
  wrapper.shards = true;
  journal.send(wrapper);
}

void say_modelled(const std::string& what, Journal& journal) {
  EventRecord note;
  note.text = "modelled: " + what;
  journal.event(std::move(note));
}

at::Tensor announced_forward(const std::string& model, bool armed, bool& inside, Journal& journal,
                             const std::function<at::Tensor()>& body) {
  EventRecord event;
  event.type = EventType::wrapper_forward;
  event.model = model;
  event.armed = armed;
  event.grad_mode = at::GradMode::is_enabled();
  event.no_sync = false;
  journal.event(std::move(event));
  const Inside entered(inside);
  return body();
}

}  // namespace gradcheck::native
