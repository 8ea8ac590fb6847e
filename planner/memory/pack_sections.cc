#include "planner/memory/pack_sections.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

struct Event {
  int64_t step = 0;
  bool starts = false;  // at one step ends come first: lifetimes are half-open
  size_t item = 0;

  bool operator<(const Event& other) const {
    return std::tie(step, starts, item) < std::tie(other.step, other.starts, other.item);
  }
};

std::vector<Event> eventsOf(const std::vector<PackItem>& items) {
  std::vector<Event> events;
  events.reserve(2 * items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].bytes > 0 && items[i].lower < items[i].upper) {
      events.push_back({items[i].lower, true, i});
      events.push_back({items[i].upper, false, i});
    }
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

std::vector<PackComponent> packComponents(const std::vector<PackItem>& items, int64_t alignment) {
  std::vector<PackComponent> components;
  std::vector<size_t> place(items.size(), 0);  // within its component
  size_t alive = 0;
  int64_t live = 0;
  bool ended = true;  // since the last start: the next start opens a section
  for (const Event& event : eventsOf(items)) {
    const int64_t size = alignUp(items[event.item].bytes, alignment);
    if (!event.starts) {
      PackComponent& component = components.back();
      component.items[place[event.item]].last = component.sections;
      --alive;
      live -= size;
      ended = true;
      continue;
    }
    if (alive == 0) {
      components.emplace_back();
    }
    PackComponent& component = components.back();
    component.sections += ended ? 1 : 0;
    ended = false;
    place[event.item] = component.items.size();
    component.items.push_back({component.sections - 1, 0, size});
    component.members.push_back(event.item);
    ++alive;
    live += size;
    component.maxLive = std::max(component.maxLive, live);
  }
  return components;
}

}  // namespace weft
