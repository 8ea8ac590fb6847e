#include "planner/memory/pack_greedy.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <random>

namespace weft {
namespace {

// On very large dense inputs not all orders are tried.
constexpr int64_t kGreedySteps = 2'000'000'000;

struct Placed {
  int64_t offset = 0;
  int64_t top = 0;
};

// The placed items alive with a given one, by offset. Two ways, the cheaper is chosen once per component: a list of all
// placed items in order of offset that is filtered, or, where few items overlap, a search tree over lifetimes.
class PlacedItems {
 public:
  PlacedItems(const PackComponent& component, bool dense, int64_t& effort)
      : items_(component.items), dense_(dense), effort_(effort) {
    if (!dense_) {
      leaves_ = std::bit_ceil(items_.size());
      latest_.assign(2 * leaves_, -1);
      offsets_.assign(items_.size(), 0);
    }
  }

  void add(int item, int64_t offset) {
    const SectionItem& added = items_[item];
    if (dense_) {
      const auto at = std::upper_bound(sorted_.begin(), sorted_.end(), offset,
                                       [](int64_t value, const Entry& entry) { return value < entry.place.offset; });
      sorted_.insert(at, {{offset, offset + added.size}, added.first, added.last});
      return;
    }
    offsets_[item] = offset;
    for (size_t node = leaves_ + item; node > 0; node /= 2) {
      latest_[node] = std::max(latest_[node], added.last);
    }
  }

  // Calls visit(place) in order of offset until it returns false.
  template <typename Visit>
  void visitOverlapping(int item, const Visit& visit) {
    const SectionItem& asked = items_[item];
    if (dense_) {
      for (const Entry& entry : sorted_) {
        ++effort_;
        if (entry.first < asked.last && asked.first < entry.last && !visit(entry.place)) {
          return;
        }
      }
      return;
    }
    found_.clear();
    collect(1, 0, leaves_, asked);
    effort_ += static_cast<int64_t>(12 * found_.size()) + 32;
    std::sort(found_.begin(), found_.end(), [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    for (const Placed& place : found_) {
      if (!visit(place)) {
        return;
      }
    }
  }

 private:
  struct Entry {
    Placed place;
    int first = 0;
    int last = 0;
  };

  // Items are numbered in the order of their first section, so those that begin before `asked` ends are a prefix.
  void collect(size_t node, size_t begin, size_t size, const SectionItem& asked) {
    if (latest_[node] <= asked.first || begin >= items_.size() || items_[begin].first >= asked.last) {
      return;
    }
    if (size == 1) {
      found_.push_back({offsets_[begin], offsets_[begin] + items_[begin].size});
      return;
    }
    collect(2 * node, begin, size / 2, asked);
    collect(2 * node + 1, begin + size / 2, size / 2, asked);
  }

  const std::vector<SectionItem>& items_;
  bool dense_ = false;
  int64_t& effort_;
  std::vector<Entry> sorted_;     // dense: by offset
  std::vector<int64_t> offsets_;  // else: by item
  std::vector<int> latest_;       // the latest end below a node of the tree, placed items only
  size_t leaves_ = 1;
  std::vector<Placed> found_;
};

int64_t choosePlace(PlacedItems& placed, int item, int64_t size, Fit fit) {
  int64_t top = 0;  // of everything visited so far
  int64_t best = -1;
  int64_t bestGap = INT64_MAX;
  placed.visitOverlapping(item, [&](const Placed& place) {
    const int64_t gap = place.offset - top;
    if (gap >= size && gap < bestGap) {
      best = top;
      bestGap = gap;
    }
    top = std::max(top, place.top);
    return fit == Fit::kTightest || best < 0;
  });
  return best < 0 ? top : best;
}

// Sum over items of how many are alive with them, counted from starts and ends per section.
int64_t overlaps(const PackComponent& component) {
  std::vector<int64_t> starts(component.sections + 1, 0);
  for (const SectionItem& item : component.items) {
    ++starts[item.first + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  int64_t sum = 0;
  for (const SectionItem& item : component.items) {
    sum += 2 * (starts[item.last] - starts[item.first + 1]) + (starts[item.first + 1] - starts[item.first]);
  }
  return sum;
}

bool isDense(const PackComponent& component) {
  const auto count = static_cast<int64_t>(component.items.size());
  return overlaps(component) * 8 > count * count;
}

// The greatest and the summed load of the sections an item covers: what it competes with.
struct Pressure {
  std::vector<int64_t> greatest;
  std::vector<double> sum;
};

Pressure pressureOf(const PackComponent& component) {
  std::vector<int64_t> load(component.sections + 1, 0);
  for (const SectionItem& item : component.items) {
    load[item.first] += item.size;
    load[item.last] -= item.size;
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  // Greatest over powers of two of sections, so that every item asks for two of them.
  std::vector<std::vector<int64_t>> table{load};
  for (int width = 1; 2 * width <= component.sections; width *= 2) {
    std::vector<int64_t> wider = table.back();
    for (int s = 0; s + width < component.sections; ++s) {
      wider[s] = std::max(table.back()[s], table.back()[s + width]);
    }
    table.push_back(std::move(wider));
  }
  std::vector<double> before(component.sections + 1, 0);
  for (int s = 0; s < component.sections; ++s) {
    before[s + 1] = before[s] + static_cast<double>(load[s]);
  }
  Pressure pressure;
  for (const SectionItem& item : component.items) {
    const int level = std::bit_width(static_cast<unsigned>(item.last - item.first)) - 1;
    pressure.greatest.push_back(std::max(table[level][item.first], table[level][item.last - (1 << level)]));
    pressure.sum.push_back(before[item.last] - before[item.first]);
  }
  return pressure;
}

// Keys of the greedy orders: greater goes first, the second breaks ties.
using Key = std::function<std::pair<double, double>(int)>;

std::vector<Key> orderKeys(const PackComponent& component, const Pressure& pressure) {
  auto size = [&](int i) { return static_cast<double>(component.items[i].size); };
  auto length = [&](int i) { return static_cast<double>(component.items[i].last - component.items[i].first); };
  auto first = [&](int i) { return static_cast<double>(component.items[i].first); };
  auto last = [&](int i) { return static_cast<double>(component.items[i].last); };
  return {
      [=](int i) { return std::pair(size(i), length(i)); },
      [=](int i) { return std::pair(length(i), size(i)); },
      [=](int i) { return std::pair(size(i) * length(i), size(i)); },
      [=, &pressure](int i) { return std::pair(static_cast<double>(pressure.greatest[i]), size(i)); },
      [=, &pressure](int i) { return std::pair(static_cast<double>(pressure.greatest[i]), length(i)); },
      [=, &pressure](int i) { return std::pair(pressure.sum[i], size(i)); },
      [=](int i) { return std::pair(-first(i), length(i)); },
      [=](int i) { return std::pair(last(i), length(i)); },
  };
}

}  // namespace

Offsets placeInOrder(const PackComponent& component, const std::vector<int>& order, Fit fit, int64_t& effort,
                     int64_t tooHigh) {
  PlacedItems placed(component, isDense(component), effort);
  Offsets offsets;
  offsets.of.assign(component.items.size(), 0);
  for (const int item : order) {
    const int64_t size = component.items[item].size;
    offsets.of[item] = choosePlace(placed, item, size, fit);
    placed.add(item, offsets.of[item]);
    offsets.height = std::max(offsets.height, offsets.of[item] + size);
    if (offsets.height >= tooHigh) {
      break;
    }
  }
  return offsets;
}

Offsets bestGreedy(const PackComponent& component, std::vector<int>& order) {
  const Pressure pressure = pressureOf(component);
  Offsets best;
  int64_t effort = 0;
  for (const Key& key : orderKeys(component, pressure)) {
    std::vector<std::pair<std::pair<double, double>, int>> keyed;
    for (size_t i = 0; i < component.items.size(); ++i) {
      keyed.push_back({key(static_cast<int>(i)), static_cast<int>(i)});
    }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<int> tried;
    for (const auto& entry : keyed) {
      tried.push_back(entry.second);
    }
    for (const Fit fit : {Fit::kLowest, Fit::kTightest}) {
      Offsets offsets = placeInOrder(component, tried, fit, effort, best.of.empty() ? INT64_MAX : best.height);
      if (best.of.empty() || offsets.height < best.height) {
        best = std::move(offsets);
        order = tried;
      }
      if (best.height == component.maxLive || effort > kGreedySteps) {
        return best;
      }
    }
  }
  return best;
}

Offsets repair(const PackComponent& component, std::vector<int> order, Offsets best, int64_t aim, int64_t& effort) {
  std::mt19937_64 random(1);  // its sequence is fixed by the standard
  Offsets current = best;
  while (best.height > aim && effort > 0) {
    std::vector<int> tried = order;
    // One of the items on top goes to a place before its own.
    std::vector<size_t> high;
    for (size_t at = 0; at < tried.size(); ++at) {
      if (current.of[tried[at]] + component.items[tried[at]].size == current.height) {
        high.push_back(at);
      }
    }
    const size_t from = high[random() % high.size()];
    const size_t to = random() % (from + 1);
    std::rotate(tried.begin() + static_cast<int64_t>(to), tried.begin() + static_cast<int64_t>(from),
                tried.begin() + static_cast<int64_t>(from) + 1);
    int64_t used = 0;
    Offsets offsets = placeInOrder(component, tried, Fit::kLowest, used);
    effort -= used + static_cast<int64_t>(tried.size());
    if (offsets.height <= current.height) {
      current = std::move(offsets);
      order = std::move(tried);
      if (current.height < best.height) {
        best = current;
      }
    }
  }
  return best;
}

}  // namespace weft
