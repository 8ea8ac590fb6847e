#include "planner/memory/pack.h"

#include <algorithm>
#include <memory>

#include "planner/memory/pack_greedy.h"
#include "planner/memory/pack_search.h"
#include "planner/memory/pack_sections.h"

namespace weft {
namespace {

// The search recurses once per item and keeps the items of every section; larger components are packed greedily.
constexpr size_t kSearchItems = 5'000;
constexpr int64_t kSearchCells = 20'000'000;
// Steps of the first questions to the search, per item and section: about what one descent takes. Every round doubles
// them.
constexpr int64_t kFirstSlice = 32;
constexpr double kParts[] = {0.5, 0.25, 1.0};  // capacities above the bound: shares of the way to the best height
constexpr int64_t kRepairShare = 8;            // of the effort left, at most

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

// One component: packed greedily first, then better round by round.
class ComponentPacker {
 public:
  explicit ComponentPacker(const PackComponent& component)
      : component_(component), best_(bestGreedy(component, order_)), lowerBound_(component.maxLive) {}

  const Offsets& best() const { return best_; }
  int64_t lowerBound() const { return lowerBound_; }

  // Tries to lower the height to `enough`, or to raise the lower bound to the height. Each round takes about twice the
  // steps of the one before, at most `effort`; returns the steps taken.
  int64_t improve(int64_t enough, int64_t effort) {
    enough_ = enough;
    effort_ = effort;
    if (!searchable()) {
      mend(effort);
    } else {
      if (search_ == nullptr) {
        search_ = std::make_unique<PackSearch>(component_);
      }
      round();
      ++number_;
    }
    return effort - effort_;
  }

 private:
  int64_t aim() const { return std::max(enough_, lowerBound_); }
  bool busy() const { return best_.height > aim() && effort_ > 0; }

  bool searchable() const {
    int64_t cells = 0;
    for (const SectionItem& item : component_.items) {
      cells += item.last - item.first;
    }
    return component_.items.size() <= kSearchItems && cells <= kSearchCells;
  }

  // Repair, then every style is asked for the bound; after each second one for a capacity further up.
  void round() {
    const int64_t square = static_cast<int64_t>(component_.items.size()) * component_.sections;
    const int64_t slice = (kFirstSlice * square) << std::min<uint64_t>(number_, 20);
    const std::vector<SearchStyle> styles = searchStyles(number_);
    mend(std::min(2 * slice, effort_ / kRepairShare));
    for (size_t k = 0; k < styles.size(); ++k) {
      ask(0, styles[k], slice);
      if (k % 2 == 1) {
        ask(kParts[k / 2 % 3], styles[(k + number_) % styles.size()], slice);
      }
    }
  }

  // Asks for the bound (part 0) to just below the best height (1), again while the height falls or the bound rises.
  void ask(double part, const SearchStyle& style, int64_t slice) {
    bool helped = true;
    while (helped && busy()) {
      const auto above = static_cast<int64_t>(part * static_cast<double>(best_.height - 1 - aim()));
      int64_t used = 0;
      const SearchAnswer answer = search_->fits(aim() + above, style, std::min(slice, effort_), used);
      effort_ -= used;
      helped = answer != SearchAnswer::kGaveUp;
      if (answer == SearchAnswer::kFits) {
        take(search_->offsets());
      } else if (answer == SearchAnswer::kDoesNotFit) {
        lowerBound_ = std::min(search_->leastExceeding(), best_.height);
      }
    }
  }

  void mend(int64_t effort) {
    int64_t left = effort;
    best_ = repair(component_, order_, best_, aim(), left);
    effort_ -= effort - left;
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
  std::unique_ptr<PackSearch> search_;
  uint64_t number_ = 0;  // of the round
  int64_t enough_ = 0;
  int64_t effort_ = 0;  // left to the round
};

ComponentPacker& highest(std::vector<ComponentPacker>& packers) {
  return *std::max_element(packers.begin(), packers.end(), [](const ComponentPacker& a, const ComponentPacker& b) {
    return a.best().height < b.best().height;
  });
}

}  // namespace

Packing pack(const std::vector<PackItem>& items, const PackOptions& options) {
  Packing packing;
  packing.offsets.assign(items.size(), 0);
  const std::vector<PackComponent> components = packComponents(items, options.alignment);
  if (components.empty()) {
    return packing;
  }
  std::vector<ComponentPacker> packers(components.begin(), components.end());
  for (const PackComponent& component : components) {
    packing.maxLive = std::max(packing.maxLive, component.maxLive);
  }
  packing.lowerBound = packing.maxLive;
  packing.greedyBytes = highest(packers).best().height;
  // Only the highest component counts: effort goes to whichever that is, until it cannot be lower.
  while (highest(packers).best().height > packing.lowerBound && packing.effort < options.effort) {
    ComponentPacker& packer = highest(packers);
    packing.effort += packer.improve(packing.lowerBound, options.effort - packing.effort);
    packing.lowerBound = std::max(packing.lowerBound, packer.lowerBound());
  }
  packing.bytes = highest(packers).best().height;
  for (size_t c = 0; c < components.size(); ++c) {
    for (size_t k = 0; k < components[c].members.size(); ++k) {
      packing.offsets[components[c].members[k]] = packers[c].best().of[k];
    }
  }
  return packing;
}

}  // namespace weft
