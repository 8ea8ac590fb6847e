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
constexpr int64_t kFirstSlice = 32;

// The styles fail on different instances, and a run is either short or hopeless: many short runs beat a long one.
std::vector<SearchStyle> searchStyles(uint64_t round) {
  using Prefer = SearchStyle::Prefer;
  using Section = SearchStyle::Section;
  return {
      {Prefer::kLength, Section::kFewest},
      {Prefer::kSize, Section::kBlamed},
      {Prefer::kLength, Section::kLowest},
      {Prefer::kLength, Section::kTightest},
      {Prefer::kArea, Section::kBlamed},
      {Prefer::kLength, Section::kBlamed},
      {Prefer::kRandom, Section::kFewest, 4 * round},
      {Prefer::kSize, Section::kFewest},
      {Prefer::kRandom, Section::kTightest, 4 * round + 1},
      {Prefer::kRandom, Section::kBlamed, 4 * round + 2},
      {Prefer::kArea, Section::kTightest},
      {Prefer::kRandom, Section::kLowest, 4 * round + 3},
  };
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
    const auto square = static_cast<int64_t>(component_.items.size()) * component_.sections;
    for (uint64_t number = 0; !done(enough) && used < effort; ++number) {
      round(search, enough, number, square, effort, used);
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

  // Every style is asked for the bound, then some for capacities up to just below the best height; between, repair.
  void round(PackSearch& search, int64_t enough, uint64_t number, int64_t square, int64_t effort, int64_t& used) {
    const int64_t slice = kFirstSlice * square << number;
    const std::vector<SearchStyle> styles = searchStyles(number);
    for (const SearchStyle& style : styles) {
      ask(search, enough, 0, style, slice, effort, used);
    }
    mend(enough, std::min(2 * slice, effort - used), used);
    for (const double aim : {0.25, 0.5, 1.0}) {
      for (size_t k = 0; k < 3; ++k) {
        ask(search, enough, aim, styles[(number + 4 * k) % styles.size()], slice, effort, used);
      }
    }
  }

  // Asks again while the answers help: the best height falls or the bound rises.
  void ask(PackSearch& search, int64_t enough, double aim, const SearchStyle& style, int64_t slice, int64_t effort, int64_t& used) {
    while (!done(enough) && used < effort) {
      const int64_t least = std::max(enough, lowerBound_);
      const auto above = static_cast<int64_t>(aim * static_cast<double>(best_.height - 1 - least));
      if (!ask(search, least + above, style, std::min(slice, effort - used), used)) {
        return;
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
