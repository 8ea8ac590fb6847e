#include "passes/plan/pack.h"

#include <algorithm>
#include <numeric>

#include "passes/plan/pack_greedy.h"
#include "passes/plan/pack_search.h"
#include "passes/plan/pack_sections.h"

namespace weft {
namespace {

// The search recurses once per item and keeps the items of every section; larger components are packed greedily.
constexpr size_t kSearchItems = 5'000;
constexpr int64_t kSearchCells = 20'000'000;
// Steps of the first questions to the search; every round doubles them.
constexpr int64_t kFirstSlice = 200'000;

const std::vector<SearchStyle>& searchStyles() {
  using Prefer = SearchStyle::Prefer;
  static const std::vector<SearchStyle> styles{
      {Prefer::kArea, false, 0},  {Prefer::kSize, false, 0},  {Prefer::kLength, false, 0}, {Prefer::kArea, true, 0},
      {Prefer::kSize, true, 0},   {Prefer::kLength, true, 0}, {Prefer::kRandom, false, 1}, {Prefer::kRandom, false, 2},
      {Prefer::kRandom, true, 3},
  };
  return styles;
}

// One component: packed greedily first, then better within what effort is left.
class ComponentPacker {
 public:
  explicit ComponentPacker(const PackComponent& component)
      : component_(component), best_(bestGreedy(component, order_)), lowerBound_(component.maxLive) {
    greedyHeight_ = best_.height;
  }

  const Offsets& best() const { return best_; }
  int64_t lowerBound() const { return lowerBound_; }
  int64_t greedyHeight() const { return greedyHeight_; }

  // Lowers the height to `enough` or the optimum, unless the effort runs out first. Returns the effort used.
  int64_t improve(int64_t enough, int64_t effort) {
    if (done(enough)) {
      return 0;
    }
    int64_t used = 0;
    if (!searchable()) {
      mend(enough, effort, used);
      return used;
    }
    PackSearch search(component_);
    for (int64_t slice = kFirstSlice; !done(enough) && used < effort; slice *= 2) {
      round(search, enough, slice, effort, used);
    }
    return used;
  }

 private:
  bool done(int64_t enough) const { return best_.height <= std::max(enough, lowerBound_); }

  bool searchable() const {
    int64_t cells = 0;
    for (const SectionItem& item : component_.items) {
      cells += item.last - item.first;
    }
    return component_.items.size() <= kSearchItems && cells <= kSearchCells;
  }

  // Every style is asked for the bound, then for capacities up to just below the best height; between, repair.
  void round(PackSearch& search, int64_t enough, int64_t slice, int64_t effort, int64_t& used) {
    for (const double aim : {0.0, 0.25, 0.5, 1.0}) {
      for (const SearchStyle& style : searchStyles()) {
        while (!done(enough) && used < effort) {
          const int64_t least = std::max(enough, lowerBound_);
          const auto above = static_cast<int64_t>(aim * static_cast<double>(best_.height - 1 - least));
          if (!ask(search, least + above, style, slice, used)) {
            break;
          }
        }
      }
      if (aim == 0.0) {
        mend(enough, std::min(2 * slice, effort - used), used);
      }
    }
  }

  void mend(int64_t enough, int64_t effort, int64_t& used) {
    int64_t left = effort;
    best_ = repair(component_, order_, best_, std::max(enough, lowerBound_), left);
    used += effort - left;
  }

  // True if the answer was found: the best height fell or the bound rose.
  bool ask(PackSearch& search, int64_t capacity, const SearchStyle& style, int64_t slice, int64_t& used) {
    switch (search.fits(capacity, style, slice, used)) {
      case SearchAnswer::kFits:
        take(search.offsets());
        return true;
      case SearchAnswer::kDoesNotFit:
        lowerBound_ = std::min(search.leastExceeding(), best_.height);
        return true;
      case SearchAnswer::kGaveUp:
        return false;
    }
    return false;
  }

  void take(const std::vector<int64_t>& offsets) {
    best_.of = offsets;
    best_.height = 0;
    for (size_t i = 0; i < offsets.size(); ++i) {
      best_.height = std::max(best_.height, offsets[i] + component_.items[i].size);
    }
  }

  const PackComponent& component_;
  std::vector<int> order_;
  Offsets best_;
  int64_t lowerBound_ = 0;
  int64_t greedyHeight_ = 0;
};

}  // namespace

int64_t alignUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

Packing pack(const std::vector<PackItem>& items, const PackOptions& options) {
  const std::vector<PackComponent> components = packComponents(items, options.alignment);
  std::vector<ComponentPacker> packers(components.begin(), components.end());
  Packing packing;
  packing.offsets.assign(items.size(), 0);
  for (size_t c = 0; c < components.size(); ++c) {
    packing.maxLive = std::max(packing.maxLive, components[c].maxLive);
    packing.greedyBytes = std::max(packing.greedyBytes, packers[c].greedyHeight());
  }
  packing.lowerBound = packing.maxLive;
  // The tallest first: what it cannot do without is free for the others.
  std::vector<size_t> order(components.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return packers[a].best().height > packers[b].best().height; });
  for (const size_t c : order) {
    const int64_t enough = std::max(packing.lowerBound, packing.bytes);
    packing.effort += packers[c].improve(enough, options.effort - packing.effort);
    packing.bytes = std::max(packing.bytes, packers[c].best().height);
    packing.lowerBound = std::max(packing.lowerBound, packers[c].lowerBound());
    for (size_t k = 0; k < components[c].members.size(); ++k) {
      packing.offsets[components[c].members[k]] = packers[c].best().of[k];
    }
  }
  return packing;
}

}  // namespace weft
