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

  // How many ranks of a group lie on the node of its first one; all groups over the same axes have as many here.
  double onNode(const AxisList& axes) const {
    if (machine_.devicesPerNode == 0) {
      return ranksOf(axes);
    }
    const std::vector<int64_t> group = mesh_.groups(axes).front();
    return static_cast<double>(std::count_if(group.begin(), group.end(), [&](int64_t rank) {
      return rank / machine_.devicesPerNode == group.front() / machine_.devicesPerNode;
    }));
  }

  static double ranksOf(const AxisList& axes) {
    double n = 1;
    for (const Axis& axis : axes) {
      n *= static_cast<double>(axis.size);
    }
    return n;
  }

  // An all_gather over `axes` of which `gathered` bytes come out; a reduce_scatter of as many takes as long, an
  // all_reduce is one of each.
  double gatherCost(const AxisList& axes, double gathered, double rounds = 1) const {
    const double n = ranksOf(axes);
    const double p = onNode(axes);
    const double k = n / p;
    const double inside = machine_.linkBandwidth;
    double seconds = (n - 1) * machine_.linkLatency + (n - 1) / n * gathered / inside;
    if (k > 1) {
      const double groups = static_cast<double>(machine_.devicesPerNode) / p;  // that share a node's cards
      const double ring = (n - 1) * machine_.networkLatency +
                          (n - 1) / n * gathered / std::min(inside, machine_.networkBandwidth / groups);
      const double hierarchical = (k - 1) * machine_.networkLatency +
                                  (k - 1) / k * (gathered / p) / (machine_.networkBandwidth / (groups * p)) +
                                  (p - 1) * machine_.linkLatency + (p - 1) / p * gathered / inside;
      seconds = std::min(ring, hierarchical);
    }
    return machine_.launchLatency + rounds * seconds;
  }

  double exchangeCost(const AxisList& axes, double local) const {
    const double n = ranksOf(axes);
    const double p = onNode(axes);
    double seconds = (p - 1) * machine_.linkLatency + local * (p - 1) / n / machine_.linkBandwidth;
    if (n > p) {
      const double share = machine_.networkBandwidth / static_cast<double>(machine_.devicesPerNode);
      seconds = (p - 1) * machine_.linkLatency + (n - p) * machine_.networkLatency +
                std::max(local * (p - 1) / n / machine_.linkBandwidth, local * (n - p) / n / share);
    }
    return machine_.launchLatency + seconds;
  }

  double permuteCost(double local) const {
    if (machine_.devicesPerNode == 0 || mesh_.ranks() <= machine_.devicesPerNode) {
      return machine_.launchLatency + machine_.linkLatency + local / machine_.linkBandwidth;
    }
    return machine_.launchLatency + machine_.networkLatency +
           local / (machine_.networkBandwidth / static_cast<double>(machine_.devicesPerNode));
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
  std::vector<AxisList> threeParts(const Axis& axis) const {
    std::vector<AxisList> ways;
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
        visit(permuteCost(bytes(layout)), other);
      }
    }
  }

  template <typename Visit>
  void slices(const Layout& layout, Visit visit) const {
    AxisList used;
    for (const AxisList& dim : layout.dims()) {
      used.insert(used.end(), dim.begin(), dim.end());
    }
    for (const Partial& p : layout.partial()) {
      used.push_back(p.axis);
    }
    for (const Axis& free : freeAxes(used, mesh_)) {
      for (const AxisList& way : threeParts(free)) {
        append(layout, {way[1]}, 0, visit);
      }
    }
  }

  template <typename Visit>
  void append(const Layout& layout, const AxisList& axes, double price, Visit visit) const {
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      Layout next = layout;
      AxisList dim = layout.dim(d);
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
      const AxisList& dim = layout.dim(d);
      for (size_t first = 0; first < dim.size(); ++first) {
        for (const AxisList& way : threeParts(dim[first])) {
          if (way[2].size != 1) {
            continue;
          }
          AxisList kept(dim.begin(), dim.begin() + static_cast<int64_t>(first));
          kept.push_back(way[0]);
          AxisList moved{way[1]};
          moved.insert(moved.end(), dim.begin() + static_cast<int64_t>(first) + 1, dim.end());
          Layout rest = layout;
          rest.setDim(d, kept);
          visit(gatherCost(moved, bytes(rest)), rest);
          append(rest, moved, exchangeCost(moved, bytes(layout)), [&](double price, const Layout& next) {
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
  void reductions(const Layout& layout, const Visit& visit, const AxisList& removed = {}) const {
    for (size_t i = 0; i < layout.partial().size(); ++i) {
      for (const AxisList& way : threeParts(layout.partial()[i].axis)) {
        std::vector<Partial> partial = layout.partial();
        const ReduceKind kind = partial[i].kind;
        partial.erase(partial.begin() + static_cast<int64_t>(i));
        partial.push_back({way[0], kind});
        partial.push_back({way[2], kind});
        Layout rest = layout;
        rest.setPartial(partial);
        rest = rest.canonical();
        AxisList axes = removed;
        axes.push_back(way[1]);
        if (kind == ReduceKind::kSum) {
          append(rest, axes, gatherCost(axes, bytes(layout)), visit);
        }
        visit(gatherCost(axes, bytes(rest), 2), rest);
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
