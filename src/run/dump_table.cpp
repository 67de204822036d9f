// SPDX-License-Identifier: Apache-2.0
#include "run/dump_table.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evidence/read/mapped_file.h"
#include "numeric/kernel.h"
#include "numeric/scan.h"

namespace gradcheck {
namespace {

constexpr std::size_t kWindow = std::size_t{4} << 20;  // bytes of a file in memory at a time
constexpr std::size_t kBlock = std::size_t{64} << 10;  // bytes that stay in the cache

// One tensor in all dumps; null where a dump does not hold it.
using Views = std::vector<const TensorView*>;

// Pages of a file while they are read.
class Window {
 public:
  Window(std::span<const std::byte> bytes, bool mapped) : bytes_(bytes), mapped_(mapped) {
    if (mapped_ && bytes_.size() >= kBlock) expect_reading(bytes_);
  }
  ~Window() {
    if (mapped_ && bytes_.size() >= kBlock) drop_pages(bytes_);
  }
  Window(Window&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), mapped_(other.mapped_) {}

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  bool mapped_;
};

std::span<const std::byte> part(std::span<const std::byte> bytes, std::size_t at,
                                std::size_t most) {
  return bytes.subspan(at, std::min(most, bytes.size() - at));
}

bool same_type(const Views& views) {
  return std::all_of(views.begin(), views.end(), [&](const TensorView* view) {
    return view != nullptr && views.front() != nullptr && view->dtype == views.front()->dtype &&
           view->shape == views.front()->shape;
  });
}

bool equal_in(const std::vector<Window>& windows, DType dtype, Scan& scan) {
  const auto first = windows.front().bytes();
  for (std::size_t at = 0; at < first.size(); at += kBlock) {
    const auto block = part(first, at, kBlock);
    for (std::size_t i = 1; i < windows.size(); ++i) {
      if (std::memcmp(block.data(), windows[i].bytes().data() + at, block.size()) != 0)
        return false;
    }
    scan_elements(dtype, block, scan);
  }
  return true;
}

TensorStats measured(const TensorView& view, KernelMode mode, bool mapped) {
  Kernel kernel(view.dtype, mode);
  for (std::size_t at = 0; at < view.bytes.size(); at += kWindow) {
    const Window window(part(view.bytes, at, kWindow), mapped);
    kernel.update(window.bytes());
  }
  return kernel.finish();
}

class Tabulator {
 public:
  Tabulator(std::span<const Dump> ranks, std::span<const Dump> locals)
      : ranks_(ranks),
        locals_(locals),
        result_{EvidenceTable(static_cast<int>(ranks.size())), {}} {}

  DumpTable work() {
    for (const std::string& name : names_in(ranks_)) add_values(name);
    for (const std::string& name : names_in(locals_)) add_locals(name);
    for (int rank = 0; rank < result_.table.world_size(); ++rank) add_story(rank);
    result_.table.finish();
    return std::move(result_);
  }

 private:
  // As they lie in the first dump that holds them, so that files are read from front to back.
  static std::vector<std::string> names_in(std::span<const Dump> dumps) {
    std::vector<std::string> names;
    std::set<std::string> known;
    for (const Dump& dump : dumps) {
      std::vector<std::pair<const std::byte*, std::string>> places;
      for (const auto& [name, view] : dump.tensors) {
        if (known.insert(name).second) places.emplace_back(view.bytes.data(), name);
      }
      std::sort(places.begin(), places.end());
      for (auto& [place, name] : places) names.push_back(std::move(name));
    }
    return names;
  }

  static Views views_of(std::span<const Dump> dumps, const std::string& name) {
    Views views;
    for (const Dump& dump : dumps) {
      const auto found = dump.tensors.find(name);
      views.push_back(found == dump.tensors.end() ? nullptr : &found->second);
    }
    return views;
  }

  bool mapped(std::size_t rank) const { return ranks_[rank].mapped; }

  bool are_equal(const Views& views, Scan& scan) const {
    const std::size_t bytes = views.front()->bytes.size();
    for (std::size_t at = 0; at < bytes; at += kWindow) {
      std::vector<Window> windows;
      for (std::size_t rank = 0; rank < views.size(); ++rank) {
        windows.emplace_back(part(views[rank]->bytes, at, kWindow), mapped(rank));
      }
      if (!equal_in(windows, views.front()->dtype, scan)) return false;
    }
    return true;
  }

  void add_values(const std::string& name) {
    const Views views = views_of(ranks_, name);
    Scan scan;
    const bool equal = same_type(views) && are_equal(views, scan);
    if (equal && locals_.empty() && !scan.nonfinite) return put_equal(name, views, scan);
    TensorStats stats;
    for (std::size_t rank = 0; rank < views.size(); ++rank) {
      const bool known = equal && rank > 0;
      if (!known && views[rank] != nullptr) {
        stats = measured(*views[rank], KernelMode::full, mapped(rank));
      }
      put(name, Stage::reduced, rank, views[rank], stats);
    }
  }

  // Equal bytes need no digest to be known as equal.
  void put_equal(const std::string& name, const Views& views, const Scan& scan) {
    TensorRecord record = record_of(name, Stage::reduced, *views.front());
    record.state = scan.nonzero ? TensorState::finite : TensorState::zero;
    record.stats.n = views.front()->bytes.size() / size_of(record.dtype);
    for (std::size_t rank = 0; rank < views.size(); ++rank) {
      put(record, rank);
      keep(name, Stage::reduced, rank, *views[rank]);
    }
  }

  void add_locals(const std::string& name) {
    const Views views = views_of(locals_, name);
    for (std::size_t rank = 0; rank < views.size(); ++rank) {
      if (views[rank] == nullptr) continue;
      put(name, Stage::local, rank, views[rank],
          measured(*views[rank], KernelMode::full, locals_[rank].mapped));
    }
  }

  static TensorRecord record_of(const std::string& name, Stage stage, const TensorView& view) {
    TensorRecord record;
    record.stage = stage;
    record.kind = TensorKind::grad;
    record.name = name;
    record.dtype = view.dtype;
    record.shape = view.shape;
    return record;
  }

  void put(const std::string& name, Stage stage, std::size_t rank, const TensorView* view,
           const TensorStats& stats) {
    if (view == nullptr) {
      TensorRecord record = record_of(name, stage, {});
      record.state = TensorState::absent;
      return put(record, rank);
    }
    TensorRecord record = record_of(name, stage, *view);
    record.stats = stats;
    record.state = state_of(*view, stats);
    put(record, rank);
    keep(name, stage, rank, *view);
  }

  // Integers are zero where all their bits are: the kernel does not look.
  static TensorState state_of(const TensorView& view, const TensorStats& stats) {
    if (stats.measured) return gradcheck::state_of(stats);
    Scan scan;
    scan_elements(view.dtype, view.bytes, scan);
    return scan.nonzero ? TensorState::finite : TensorState::zero;
  }

  void put(const TensorRecord& record, std::size_t rank) {
    result_.table.put(static_cast<int>(rank), record, ++sequence_);
  }

  void keep(const std::string& name, Stage stage, std::size_t rank, const TensorView& view) {
    result_.payloads.emplace(PayloadKey{0, 0, stage, static_cast<int>(rank), "/" + name}, view);
  }

  // What must have happened: one backward, whose gradients an optimizer is to take.
  void add_story(int rank) {
    for (const EventType type : {EventType::backward, EventType::optimizer_step}) {
      EventRecord event;
      event.type = type;
      result_.table.rank(rank).events.push_back(std::move(event));
    }
  }

  std::span<const Dump> ranks_, locals_;
  DumpTable result_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

DumpTable tabulate(std::span<const Dump> ranks, std::span<const Dump> locals) {
  return Tabulator(ranks, locals).work();
}

}  // namespace gradcheck
