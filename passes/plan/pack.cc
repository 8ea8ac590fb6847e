#include "passes/plan/pack.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace weft {
namespace {

using Order = std::function<int64_t(const PackItem&)>;

bool aliveTogether(const PackItem& a, const PackItem& b) {
  return a.lower < b.upper && b.lower < a.upper;
}

// Places items in order, each at the lowest offset free over its lifetime.
Packing placeInOrder(const std::vector<PackItem>& items, const std::vector<size_t>& order) {
  Packing packing;
  packing.offsets.assign(items.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (const size_t i : order) {
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (!aliveTogether(items[i], items[other])) {
        continue;
      }
      if (packing.offsets[other] >= offset + alignUp(items[i].bytes)) {
        break;
      }
      offset = std::max(offset, packing.offsets[other] + alignUp(items[other].bytes));
    }
    packing.offsets[i] = offset;
    const auto place = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [&](int64_t at, size_t k) { return at < packing.offsets[k]; });
    placed.insert(place, i);
    packing.bytes = std::max(packing.bytes, offset + alignUp(items[i].bytes));
  }
  return packing;
}

int64_t greatestLiveSum(const std::vector<PackItem>& items) {
  std::map<int64_t, int64_t> changes;
  for (const PackItem& item : items) {
    changes[item.lower] += alignUp(item.bytes);
    changes[item.upper] -= alignUp(item.bytes);
  }
  int64_t live = 0;
  int64_t greatest = 0;
  for (const auto& [step, change] : changes) {
    live += change;
    greatest = std::max(greatest, live);
  }
  return greatest;
}

}  // namespace

int64_t alignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Packing pack(const std::vector<PackItem>& items) {
  const Order orders[] = {
      [](const PackItem& item) { return item.bytes; },
      [](const PackItem& item) { return item.upper - item.lower; },
      [](const PackItem& item) { return item.bytes * (item.upper - item.lower); },
      [](const PackItem& item) { return -item.lower; },
  };
  Packing best;
  best.bytes = -1;
  for (const Order& key : orders) {
    std::vector<size_t> order(items.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(items[a]) > key(items[b]); });
    Packing packing = placeInOrder(items, order);
    if (best.bytes < 0 || packing.bytes < best.bytes) {
      best = std::move(packing);
    }
  }
  best.bytes = std::max<int64_t>(best.bytes, 0);
  best.maxLive = greatestLiveSum(items);
  return best;
}

}  // namespace weft
