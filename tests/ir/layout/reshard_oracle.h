// The cheapest reshard found by trying everything; shares no code with the planner's search.
//
// States are all layouts of a tensor on the line of N ranks, with axes cut at any divisors of N. Legal moves, on
// canonical layouts (A, B, S are lists of axes; an axis may be cut anywhere):
//   slice           [..A..]                 -> [..A,s..]          s free                       0 bytes
//   all_gather      [..A,S..]               -> [..A..]            n = parts of S               (n-1)/n of the result
//   all_to_all      [..A,S..B..]            -> [..A..B,S..]                                    (n-1)/n of the tensor
//   reduce_scatter  [..A..] partial{S,..}   -> [..A,S..] partial{..}   in any order; sum only  (n-1)/n of the tensor
//   all_reduce      partial{S,..}           -> partial{..}                                     2(n-1)/n of the tensor
//   permute         any layout of the same local shape and the same partial axes               the tensor
// S in all_gather and all_to_all is any non-empty list of minor axes. Launches and latency: as reshard.h says.
#pragma once

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "planner/machine/machine.h"
#include "tests/ir/layout/layouts_of.h"

namespace weft::testing {

class Oracle {
 public:
  // `cutPoints`: where axes may be cut; empty = at every divisor of the ranks.
  Oracle(const Mesh& mesh, const Shape& shape, const Machine& machine, std::set<int64_t> cutPoints = {})
      : mesh_(mesh), shape_(shape), machine_(machine), cutPoints_(std::move(cutPoints)) {
    for (int64_t cut = 1; cutPoints_.empty() && cut <= mesh.ranks(); ++cut) {
      if (mesh.ranks() % cut == 0) {
        all_.insert(cut);
      }
    }
    cutPoints_.insert(all_.begin(), all_.end());
  }

  // Cost in seconds from `from` to every layout that can be reached, by its printed canonical form.
  std::map<std::string, double> costsFrom(const Layout& from) {
    std::map<std::string, double> best;
    std::priority_queue<Entry> open;
    auto offer = [&](double cost, const Layout& layout) {
      Layout canonical = layout.canonical();
      std::string name = canonical.print(mesh_);
      auto [place, fresh] = best.try_emplace(name, cost);
      if (fresh || cost < place->second) {
        place->second = cost;
        open.push({-cost, name, canonical});
      }
    };
    offer(0, from);
    std::set<std::string> done;
    while (!open.empty()) {
      Entry entry = open.top();
      open.pop();
      if (done.insert(entry.name).second) {
        forEachMove(entry.layout, [&](double cost, const Layout& next) { offer(cost - entry.negated, next); });
      }
    }
    return best;
  }

  // Layouts a permute may lead to are drawn from this list.
  void setUniverse(const std::vector<Layout>& layouts) {
    for (const Layout& layout : layouts) {
      universe_[classOf(layout)].push_back(layout);
    }
  }

 private:
  using Axes = std::vector<Axis>;
  struct Entry {
    double negated;
    std::string name;
    Layout layout;
    friend bool operator<(const Entry& a, const Entry& b) { return a.negated < b.negated; }
  };

  double bytes(const Layout& layout) const {
    double bytes = 4;
    for (int64_t size : layout.localShape(shape_)) {
      bytes *= static_cast<double>(size);
    }
    return bytes;
  }

  double cost(double hops, double received) const {
    return machine_.launchLatency + hops * machine_.linkLatency + received / machine_.linkBandwidth;
  }

  std::string classOf(const Layout& layout) const {
    std::string text;
    for (int64_t size : layout.localShape(shape_)) {
      text += std::to_string(size) + ",";
    }
    Layout partial(layout.dimensions());
    partial.setPartial(layout.canonical().partial());
    return text + partial.print(mesh_);
  }

  // All ways to write an axis as major, middle, minor, cut at cut points; any of the outer two may have size 1.
  std::vector<Axes> threeParts(const Axis& axis) const {
    std::vector<Axes> ways;
    for (int64_t a : cutPoints_) {
      for (int64_t b : cutPoints_) {
        if (a >= axis.pre && b > a && b <= axis.end() && a % axis.pre == 0 && b % a == 0 && axis.end() % b == 0) {
          ways.push_back({{AxisKind::kSpace, axis.pre, a / axis.pre},
                          {AxisKind::kSpace, a, b / a},
                          {AxisKind::kSpace, b, axis.end() / b}});
        }
      }
    }
    return ways;
  }

  template <typename Visit>
  void forEachMove(const Layout& layout, Visit visit) const {
    slices(layout, visit);
    leaving(layout, visit);
    reductions(layout, visit);
    auto same = universe_.find(classOf(layout));
    if (same != universe_.end()) {
      for (const Layout& other : same->second) {
        visit(cost(1, bytes(layout)), other);
      }
    }
  }

  template <typename Visit>
  void slices(const Layout& layout, Visit visit) const {
    Axes used;
    for (const Axes& dim : layout.dims()) {
      used.insert(used.end(), dim.begin(), dim.end());
    }
    for (const Partial& p : layout.partial()) {
      used.push_back(p.axis);
    }
    for (const Axis& free : freeAxes(used, mesh_)) {
      for (const Axes& way : threeParts(free)) {
        append(layout, {way[1]}, 0, visit);
      }
    }
  }

  template <typename Visit>
  void append(const Layout& layout, const Axes& axes, double price, Visit visit) const {
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      Layout next = layout;
      Axes dim = layout.dim(d);
      dim.insert(dim.end(), axes.begin(), axes.end());
      next.setDim(d, dim);
      if (next.check(shape_, mesh_).ok()) {
        visit(price, next);
      }
    }
  }

  // all_gather and all_to_all: some minor axes leave a dimension.
  template <typename Visit>
  void leaving(const Layout& layout, Visit visit) const {
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      const Axes& dim = layout.dim(d);
      for (size_t first = 0; first < dim.size(); ++first) {
        for (const Axes& way : threeParts(dim[first])) {
          if (way[2].size != 1) {
            continue;
          }
          Axes kept(dim.begin(), dim.begin() + static_cast<int64_t>(first));
          kept.push_back(way[0]);
          Axes moved{way[1]};
          moved.insert(moved.end(), dim.begin() + static_cast<int64_t>(first) + 1, dim.end());
          double n = 1;
          for (const Axis& axis : moved) {
            n *= static_cast<double>(axis.size);
          }
          Layout rest = layout;
          rest.setDim(d, kept);
          visit(cost(n - 1, (n - 1) / n * bytes(rest)), rest);
          append(rest, moved, cost(n - 1, (n - 1) / n * bytes(layout)), [&](double price, const Layout& next) {
            if (next.parts(d) == rest.parts(d)) {
              visit(price, next);
            }
          });
        }
      }
    }
  }

  // Removes partial axes or parts of them, in every order, and ends with a reduce_scatter or an all_reduce over them.
  template <typename Visit>
  void reductions(const Layout& layout, const Visit& visit, const Axes& removed = {}) const {
    for (size_t i = 0; i < layout.partial().size(); ++i) {
      for (const Axes& way : threeParts(layout.partial()[i].axis)) {
        std::vector<Partial> partial = layout.partial();
        const ReduceKind kind = partial[i].kind;
        partial.erase(partial.begin() + static_cast<int64_t>(i));
        partial.push_back({way[0], kind});
        partial.push_back({way[2], kind});
        Layout rest = layout;
        rest.setPartial(partial);
        rest = rest.canonical();
        Axes axes = removed;
        axes.push_back(way[1]);
        double n = 1;
        for (const Axis& axis : axes) {
          n *= static_cast<double>(axis.size);
        }
        if (kind == ReduceKind::kSum) {
          append(rest, axes, cost(n - 1, (n - 1) / n * bytes(layout)), visit);
        }
        visit(cost(2 * (n - 1), 2 * (n - 1) / n * bytes(rest)), rest);
        reductions(rest, visit, axes);
      }
    }
  }

  const Mesh& mesh_;
  Shape shape_;
  Machine machine_;
  std::set<int64_t> cutPoints_;
  std::set<int64_t> all_;
  std::map<std::string, std::vector<Layout>> universe_;
};

}  // namespace weft::testing
