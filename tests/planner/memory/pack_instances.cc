#include "tests/planner/memory/pack_instances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace weft {
namespace {

int64_t below(std::mt19937& random, int64_t bound) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
}

struct Rectangle {
  int64_t left = 0;
  int64_t right = 0;
  int64_t bottom = 0;
  int64_t top = 0;

  int64_t width() const { return right - left; }
  int64_t height() const { return top - bottom; }
};

std::vector<Rectangle> pinwheel(const Rectangle& whole, std::mt19937& random) {
  const int64_t x1 = whole.left + 1 + below(random, whole.width() - 2);
  const int64_t x2 = x1 + 1 + below(random, whole.right - x1 - 1);
  const int64_t y1 = whole.bottom + 1 + below(random, whole.height() - 2);
  const int64_t y2 = y1 + 1 + below(random, whole.top - y1 - 1);
  return {{whole.left, x2, whole.bottom, y1},
          {x2, whole.right, whole.bottom, y2},
          {x1, whole.right, y2, whole.top},
          {whole.left, x1, y1, whole.top},
          {x1, x2, y1, y2}};
}

std::vector<Rectangle> halves(const Rectangle& whole, std::mt19937& random) {
  Rectangle first = whole;
  Rectangle second = whole;
  if (whole.width() > 1 && (whole.height() < 2 || random() % 2 == 0)) {
    first.right = second.left = whole.left + 1 + below(random, whole.width() - 1);
  } else {
    first.top = second.bottom = whole.bottom + 1 + below(random, whole.height() - 1);
  }
  return {first, second};
}

double area(const Rectangle& r) {
  return static_cast<double>(r.width()) * static_cast<double>(r.height());
}

}  // namespace

std::vector<PackItem> randomItems(std::mt19937& random, int count, int steps, int greatest) {
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    const int64_t lower = below(random, steps);
    items.push_back({lower, lower + 1 + below(random, steps - lower), 1 + below(random, greatest)});
  }
  return items;
}

std::vector<PackItem> cutRectangle(std::mt19937& random, int count, int64_t steps, int64_t bytes, bool pinwheels) {
  std::vector<Rectangle> parts{{0, steps, 0, bytes}};
  while (static_cast<int>(parts.size()) < count) {
    // One of the larger parts is cut.
    std::swap(parts.back(), *std::max_element(parts.begin(), parts.end(), [](const Rectangle& a, const Rectangle& b) {
                return area(a) < area(b);
              }));
    const Rectangle whole = parts.back();
    parts.pop_back();
    const bool wheel = pinwheels && whole.width() > 3 && whole.height() > 3 && random() % 2 == 0;
    for (const Rectangle& part : wheel ? pinwheel(whole, random) : halves(whole, random)) {
      parts.push_back(part);
    }
  }
  std::shuffle(parts.begin(), parts.end(), random);
  std::vector<PackItem> items;
  for (const Rectangle& part : parts) {
    items.push_back({part.left, part.right, part.height()});
  }
  return items;
}

std::vector<PackItem> fullMemory(std::mt19937& random, int64_t steps, int64_t bytes) {
  std::vector<PackItem> items;
  std::vector<PackItem> alive;
  int64_t free = bytes;
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t i = alive.size(); i-- > 0;) {
      if (random() % 3 == 0) {
        alive[i].upper = step;
        free += alive[i].bytes;
        items.push_back(alive[i]);
        alive.erase(alive.begin() + static_cast<int64_t>(i));
      }
    }
    while (free > 0) {
      alive.push_back({step, steps, 1 + below(random, std::min<int64_t>(free, 3))});
      free -= alive.back().bytes;
    }
  }
  items.insert(items.end(), alive.begin(), alive.end());
  return items;
}

int64_t optimumByEnumeration(std::vector<PackItem> items, int64_t alignment) {
  std::sort(items.begin(), items.end(), [](const PackItem& a, const PackItem& b) { return a.lower < b.lower; });
  // Pushed down, every item lies on a sum of sizes of others, and so does the end of the region.
  std::set<int64_t> sums{0};
  for (PackItem& item : items) {
    item.bytes = (item.bytes + alignment - 1) / alignment * alignment;
    for (const int64_t sum : std::set<int64_t>(sums)) {
      sums.insert(sum + item.bytes);
    }
  }
  std::vector<int64_t> bottoms;
  const std::function<bool(int64_t)> fits = [&](int64_t capacity) {
    if (bottoms.size() == items.size()) {
      return true;
    }
    const PackItem& item = items[bottoms.size()];
    for (const int64_t bottom : sums) {
      bool free = bottom + item.bytes <= capacity;
      for (size_t k = 0; k < bottoms.size() && free; ++k) {
        free = items[k].upper <= item.lower || item.upper <= items[k].lower || bottoms[k] + items[k].bytes <= bottom ||
               bottom + item.bytes <= bottoms[k];
      }
      bottoms.push_back(bottom);
      if (free && fits(capacity)) {
        return true;
      }
      bottoms.pop_back();
    }
    return false;
  };
  return *std::find_if(sums.begin(), sums.end(), fits);
}

void expectSound(const std::vector<PackItem>& items, const Packing& packing, int64_t alignment) {
  ASSERT_EQ(packing.offsets.size(), items.size());
  int64_t used = 0;
  int64_t most = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(packing.offsets[i] % alignment, 0);
    used = std::max(used, packing.offsets[i] + items[i].bytes);
    // Something is alive for the first time at each start: that is where lives can collide.
    std::vector<std::pair<int64_t, int64_t>> alive;
    int64_t live = 0;
    for (size_t k = 0; k < items.size(); ++k) {
      if (items[k].lower <= items[i].lower && items[i].lower < items[k].upper) {
        alive.push_back({packing.offsets[k], packing.offsets[k] + items[k].bytes});
        live += (items[k].bytes + alignment - 1) / alignment * alignment;
      }
    }
    most = std::max(most, live);
    std::sort(alive.begin(), alive.end());
    for (size_t k = 1; k < alive.size(); ++k) {
      ASSERT_LE(alive[k - 1].second, alive[k].first) << "at step " << items[i].lower;
    }
  }
  EXPECT_EQ(packing.bytes, (used + alignment - 1) / alignment * alignment);
  EXPECT_EQ(packing.maxLive, most);
  EXPECT_GE(packing.lowerBound, packing.maxLive);
  EXPECT_GE(packing.bytes, packing.lowerBound);
  EXPECT_GE(packing.greedyBytes, packing.bytes);
}

}  // namespace weft
