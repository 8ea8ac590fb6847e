#include "ir/layout/reshard_line.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/layout/divisors.h"

namespace weft::reshard {
namespace {

// With more cuts than this, first the optional ones and then the free axes are left out. The number of states grows
// with the factorial of the cuts.
constexpr size_t kMaxCuts = 9;
// Cuts for trades are added up to so many. Lines of fewer are searched with every cut anyway (reshard.cc); that of 512
// ranks with a cut at every power of 2 has tens of times as many states, and no plan of weft-search-bench gains by
// more than these; with one less some do.
constexpr size_t kMaxCutsOfTrades = 5;

bool covers(const Axis& outer, int64_t pre, int64_t end) {
  return outer.pre <= pre && end <= outer.end();
}

// Where a layout puts the part [pre, end): dimension and number of parts major to it; partial is -2, free -1, and a
// part it cuts through -3.
std::pair<int64_t, int64_t> placeOf(const Layout& layout, int64_t pre, int64_t end) {
  Axis part{AxisKind::kSpace, pre, end / pre};
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    int64_t major = 1;
    for (const Axis& axis : layout.dim(d)) {
      if (overlap(axis, part)) {
        return covers(axis, pre, end) ? std::pair<int64_t, int64_t>(d, major * (pre / axis.pre))
                                      : std::pair<int64_t, int64_t>(-3, 0);
      }
      major *= axis.size;
    }
  }
  for (const Partial& partial : layout.partial()) {
    if (overlap(partial.axis, part)) {
      return {covers(partial.axis, pre, end) ? -2 : -3, 0};
    }
  }
  return {-1, 0};
}

// Space axes in the order in which a layout names them.
void appendMentioned(const Layout& layout, AxisList& axes) {
  auto append = [&](const Axis& axis) {
    if (axis.kind == AxisKind::kSpace && axis.size > 1) {
      axes.push_back(axis);
    }
  };
  for (const AxisList& dim : layout.dims()) {
    std::for_each(dim.begin(), dim.end(), append);
  }
  for (const Partial& partial : layout.partial()) {
    append(partial.axis);
  }
}

void addCut(std::vector<int64_t>& inner, int64_t size, int64_t cut) {
  if (cut > 1 && cut < size && size % cut == 0 && std::find(inner.begin(), inner.end(), cut) == inner.end()) {
    inner.insert(std::upper_bound(inner.begin(), inner.end(), cut), cut);
  }
}

}  // namespace

VirtualLine::VirtualLine(const Mesh& mesh, const Layout& from, const Layout& to, const Shape& stored,
                         const Fixed& fixed, Cuts cuts) {
  AxisList mentioned;
  appendMentioned(from, mentioned);
  appendMentioned(to, mentioned);
  cutAtoms(mesh, mentioned);
  markAtoms(from, to, fixed, mentioned);
  if (cuts == Cuts::kEverywhere) {
    cutEverywhere();
  } else {
    Shape sizes;
    for (size_t d = 0; d < stored.size(); ++d) {
      if (!fixed.dims[d]) {
        sizes.push_back(stored[d]);
      }
    }
    addMixedCuts();
    addTradeCuts(sizes);
    limitCuts();
  }
  arrange();
}

// Cuts that nest with all others separate atoms; the others (3x2 against 2x3) are inner cuts of one atom.
void VirtualLine::cutAtoms(const Mesh& mesh, const AxisList& mentioned) {
  std::set<int64_t> cuts{1, mesh.ranks()};
  for (const Axis& axis : mentioned) {
    cuts.insert({axis.pre, axis.end()});
  }
  std::vector<int64_t> inner;
  int64_t begin = 1;
  for (int64_t cut : cuts) {
    bool nests = std::all_of(cuts.begin(), cuts.end(),
                             [cut](int64_t other) { return std::max(cut, other) % std::min(cut, other) == 0; });
    if (!nests) {
      inner.push_back(cut / begin);
    } else if (cut > begin) {
      bool mixed = !inner.empty();
      atoms_.push_back({begin, cut / begin, std::exchange(inner, {}), mixed});
      begin = cut;
    }
  }
}

void VirtualLine::markAtoms(const Layout& from, const Layout& to, const Fixed& fixed, const AxisList& mentioned) {
  for (Atom& atom : atoms_) {
    Axis part{AxisKind::kSpace, atom.pre, atom.size};
    auto shares = [&](const Axis& axis) { return overlap(axis, part); };
    atom.fixed = std::any_of(fixed.axes.begin(), fixed.axes.end(), shares);
    auto first = std::find_if(mentioned.begin(), mentioned.end(), shares);
    atom.place = first == mentioned.end() ? -1 : first - mentioned.begin();
    std::pair<int64_t, int64_t> before = placeOf(from, atom.pre, atom.end());
    std::pair<int64_t, int64_t> after = placeOf(to, atom.pre, atom.end());
    // Going from partial to free takes nobody's place.
    bool placed = std::max(before.first, after.first) >= 0 || before.first == -3 || after.first == -3;
    atom.moving = !atom.fixed && placed && (before.first == -3 || before != after);
  }
}

// Neighboring atoms become one, with a cut at every divisor.
void VirtualLine::cutEverywhere() {
  std::vector<Atom> merged;
  for (const Atom& atom : atoms_) {
    if (merged.empty() || atom.fixed || merged.back().fixed) {
      merged.push_back(atom);
      continue;
    }
    Atom& run = merged.back();
    run.size *= atom.size;
    run.place = run.place < 0 || atom.place < 0 ? std::max(run.place, atom.place) : std::min(run.place, atom.place);
  }
  for (Atom& atom : merged) {
    std::vector<int64_t> all = divisorsOf(atom.size);
    atom.inner.assign(std::next(all.begin()), std::prev(all.end()));
  }
  atoms_ = std::move(merged);
}

// An axis of 4 that trades places with one of 2 moves in two halves; one that fits a dimension only in part likewise.
// First those that move, as long as there are few cuts.
void VirtualLine::addTradeCuts(const Shape& sizes) {
  auto addBoth = [&](Atom& atom, int64_t other) {
    const int64_t common = std::gcd(atom.size, other);
    for (const int64_t cut : {common, atom.size / common}) {
      if (cutCount() < kMaxCutsOfTrades) {
        addCut(atom.inner, atom.size, cut);
      }
    }
  };
  auto addAll = [&](Atom& atom) {
    for (const Atom& other : atoms_) {
      if (&other != &atom && other.moving) {
        addBoth(atom, other.size);
      }
    }
    for (int64_t size : sizes) {
      if (size > 0) {
        addBoth(atom, size);
      }
    }
  };
  for (Atom& atom : atoms_) {
    if (atom.moving) {
      addAll(atom);
    }
  }
  for (Atom& atom : atoms_) {
    if (atom.place < 0 && !atom.fixed && !atom.moving) {
      addAll(atom);
    }
  }
}

// Where cuts do not nest, a path may lead through any third way to cut.
void VirtualLine::addMixedCuts() {
  for (Atom& atom : atoms_) {
    std::vector<int64_t> all = divisorsOf(atom.size);
    if (atom.mixed && cutCount() + all.size() <= kMaxCuts + atom.inner.size()) {
      atom.inner.assign(std::next(all.begin()), std::prev(all.end()));
    }
  }
}

size_t VirtualLine::cutCount() const {
  return std::accumulate(atoms_.begin(), atoms_.end(), size_t{1}, [](size_t count, const Atom& atom) {
    return atom.fixed ? count : count + 1 + atom.inner.size();
  });
}

void VirtualLine::limitCuts() {
  auto eachWhile = [&](auto&& change) {
    for (size_t i = atoms_.size(); i-- > 0 && cutCount() > kMaxCuts;) {
      change(atoms_[i]);
    }
  };
  eachWhile([](Atom& atom) {
    if (atom.place < 0) {
      atom.inner.clear();
    }
  });
  eachWhile([](Atom& atom) { atom.fixed = atom.fixed || atom.place < 0; });
}

// Atoms in order of first mention (inside one axis: in order of the line), free ones after them by size.
void VirtualLine::arrange() {
  atoms_.erase(std::remove_if(atoms_.begin(), atoms_.end(), [](const Atom& atom) { return atom.fixed; }), atoms_.end());
  auto rank = [](const Atom& atom) {
    bool free = atom.place < 0;
    return std::tuple(free, free ? -atom.size : atom.place, atom.pre);
  };
  std::sort(atoms_.begin(), atoms_.end(), [&](const Atom& a, const Atom& b) { return rank(a) < rank(b); });
  int64_t at = 1;
  cuts_ = {1};
  for (Atom& atom : atoms_) {
    atom.virtualPre = at;
    for (int64_t cut : atom.inner) {
      cuts_.push_back(at * cut);
    }
    at *= atom.size;
    cuts_.push_back(at);
  }
}

uint8_t VirtualLine::cutIndex(int64_t value) const {
  return static_cast<uint8_t>(std::lower_bound(cuts_.begin(), cuts_.end(), value) - cuts_.begin());
}

Digits VirtualLine::digitsOf(const AxisList& axes) const {
  Digits digits;
  for (const Axis& axis : axes) {
    std::vector<const Atom*> inLineOrder;
    for (const Atom& atom : atoms_) {
      if (overlap(axis, {AxisKind::kSpace, atom.pre, atom.size})) {
        inLineOrder.push_back(&atom);
      }
    }
    std::sort(inLineOrder.begin(), inLineOrder.end(), [](const Atom* a, const Atom* b) { return a->pre < b->pre; });
    for (const Atom* atom : inLineOrder) {
      int64_t low = std::max(axis.pre, atom->pre) / atom->pre;
      int64_t high = std::min(axis.end(), atom->end()) / atom->pre;
      appendDigit(digits, {cutIndex(atom->virtualPre * low), cutIndex(atom->virtualPre * high)});
    }
  }
  return digits;
}

AxisList VirtualLine::axesOf(const Digits& digits) const {
  AxisList axes;
  for (Digit digit : digits) {
    int64_t begin = cuts_[digit.low];
    int64_t end = cuts_[digit.high];
    for (const Atom& atom : atoms_) {
      int64_t low = std::max(begin, atom.virtualPre) / atom.virtualPre;
      int64_t high = std::min(end, atom.virtualPre * atom.size) / atom.virtualPre;
      if (std::max(begin, atom.virtualPre) >= std::min(end, atom.virtualPre * atom.size)) {
        continue;
      }
      Axis axis{AxisKind::kSpace, atom.pre * low, high / low};
      std::optional<Axis> longer = axes.empty() ? std::nullopt : join(axes.back(), axis);
      if (longer) {
        axes.back() = *longer;
      } else {
        axes.push_back(axis);
      }
    }
  }
  return axes;
}

}  // namespace weft::reshard
