// The search for the cheapest path.
//
// A permute may be taken from any state to any state of equal signature (parts per dimension, partial digits), at a
// price that only the signature decides. One permute is enough: two with moves between them are as dear as one that
// does both at once followed by the same moves on renamed axes. So permutes are not edges. Instead:
//   1. A* forward from `from` without permutes; reaching `to` gives the best plan that needs none.
//   2. A* backward from `to`, and forward further on, both without permutes, as far as a permute between them could
//      still improve on the best; wherever both have met the same signature, forward + permute + backward is a plan.
// Both use the bound of Space::leastTime, which never overestimates.
#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "ir/layout/reshard_space.h"

namespace weft::reshard {
namespace {

// After this many settled states in one direction the best plan found so far is taken. Reached only by meshes with
// very many cuts; the count is of states, so the answer does not depend on the speed of the machine.
constexpr int kMaxSettled = 3000;

// Each step of a path is rounded to whole picoseconds; so much less than the bound may a path cost.
constexpr Picoseconds kRounding = 8;

struct Node {
  State state;
  Picoseconds cost = 0;
  Picoseconds bound = 0;  // of what is still to come
  int steps = 0;
  int parent = -1;
  Move move;  // between parent and this
  bool settled = false;
};

// A* from one end.
class Sweep {
 public:
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;
  Sweep(const Space& space, bool forward)
      : space_(space),
        forward_(forward),
        aim_(forward ? space.problem().to : space.problem().from),
        ids_(0, StateHash{&nodes_}, StateEqual{&nodes_}) {
    relax(-1, {}, forward ? space.problem().from : space.problem().to, 0);
  }

  // Settles the cheapest open state whose bound is at most `limit`; -1 if there is none.
  int settle(Picoseconds limit) {
    while (!open_.empty() && settledCount_ < kMaxSettled) {
      Entry top = open_.top();
      if (top.estimate > limit) {
        return -1;
      }
      open_.pop();
      Node& node = nodes_[top.node];
      if (node.settled || top.cost != node.cost || top.steps != node.steps) {
        continue;
      }
      node.settled = true;
      ++settledCount_;
      return top.node;
    }
    return -1;
  }

  void expand(int id, Picoseconds limit) {
    State state = nodes_[id].state;
    auto visit = [&](const Move& move, State other, const Price& price) {
      const Picoseconds cost = nodes_[id].cost + price.time;
      if (cost <= limit) {
        relax(id, move, std::move(other), cost);
      }
    };
    forward_ ? space_.movesFrom(state, visit) : space_.movesInto(state, visit);
  }

  const Node& node(int id) const { return nodes_[id]; }

 private:
  struct Entry {
    Picoseconds estimate = 0;
    Picoseconds cost = 0;
    int steps = 0;
    int node = 0;
    // The queue gives the largest first: smaller estimate, then fewer steps, then earlier found, is larger.
    friend bool operator<(const Entry& a, const Entry& b) {
      if (a.estimate != b.estimate) {
        return a.estimate > b.estimate;
      }
      return a.steps != b.steps ? a.steps > b.steps : a.node > b.node;
    }
  };

  // Nodes are found by their states, which they alone hold.
  struct StateHash {
    using is_transparent = void;
    const std::vector<Node>* nodes;
    size_t operator()(int id) const { return absl::HashOf((*nodes)[id].state); }
    size_t operator()(const State& state) const { return absl::HashOf(state); }
  };
  struct StateEqual {
    using is_transparent = void;
    const std::vector<Node>* nodes;
    bool operator()(int a, int b) const { return a == b; }
    bool operator()(int id, const State& state) const { return (*nodes)[id].state == state; }
    bool operator()(const State& state, int id) const { return (*nodes)[id].state == state; }
  };

  void relax(int parent, const Move& move, State state, Picoseconds cost) {
    const auto known = ids_.find(state);
    const bool fresh = known == ids_.end();
    const int id = fresh ? static_cast<int>(nodes_.size()) : *known;
    const int steps = parent < 0 ? 0 : nodes_[parent].steps + 1;
    if (fresh) {
      Node& node = nodes_.emplace_back();
      node.bound = boundOf(state);
      node.state = std::move(state);
      ids_.insert(id);
    } else if (std::pair(cost, steps) >= std::pair(nodes_[id].cost, nodes_[id].steps)) {
      return;
    }
    Node& node = nodes_[id];
    node.cost = cost;
    node.steps = steps;
    node.parent = parent;
    node.move = move;
    node.settled = false;
    open_.push({cost + node.bound, cost, steps, id});
  }

  Picoseconds boundOf(const State& state) const {
    return forward_ ? leastPathTime(space_, state, aim_) : leastPathTime(space_, aim_, state);
  }

  const Space& space_;
  bool forward_;
  State aim_;
  std::vector<Node> nodes_;
  absl::flat_hash_set<int, StateHash, StateEqual> ids_;
  std::priority_queue<Entry> open_;
  int settledCount_ = 0;
};

// The plan that always exists: reduce what is partial, gather what is not wanted, slice.
class GatherPlan {
 public:
  explicit GatherPlan(const Space& space) : space_(space), state_(space.problem().from) {}

  Path build() {
    if (!state_.partial.empty()) {
      Digits partial = std::exchange(state_.partial, {});
      path_.push_back({{CollectiveKind::kAllReduce, partial, -1, -1}, state_});
    }
    const State& to = space_.problem().to;
    for (size_t d = 0; d < to.dims.size(); ++d) {
      if (state_.dims[d] != to.dims[d] && !state_.dims[d].empty()) {
        Digits all = std::exchange(state_.dims[d], {});
        path_.push_back({{CollectiveKind::kAllGather, all, static_cast<int>(d), -1}, state_});
      }
    }
    for (size_t d = 0; d < to.dims.size(); ++d) {
      if (state_.dims[d] != to.dims[d]) {
        state_.dims[d] = to.dims[d];
        path_.push_back({{CollectiveKind::kSlice, to.dims[d], -1, static_cast<int>(d)}, state_});
      }
    }
    return path_;
  }

 private:
  const Space& space_;
  State state_;
  Path path_;
};

Price stepPrice(const Space& space, const State& before, const PathStep& step) {
  return space.priceOf(step.move.kind, step.move.axes, space.localBytes(before));
}

}  // namespace

Picoseconds leastPathTime(const Space& space, const State& from, const State& to) {
  return std::max<Picoseconds>(0, space.leastTime(from, to) - kRounding);
}

Price pathPrice(const Space& space, const Path& path) {
  Price total;
  const State* before = &space.problem().from;
  for (const PathStep& step : path) {
    total = total + stepPrice(space, *before, step);
    before = &step.after;
  }
  return total;
}

namespace {

class Search {
 public:
  explicit Search(const Space& space) : space_(space), forward_(space, true), backward_(space, false) {}

  Path run() {
    fallback_ = GatherPlan(space_).build();
    best_ = {pathPrice(space_, fallback_).time, static_cast<int>(fallback_.size())};
    searchDirect();
    // No permute is cheaper than one of the smallest local tensor.
    const Picoseconds least = permuteTime(smallestBytes());
    if (least <= best_.cost && best_.steps > 1) {
      searchBackward(least);
      searchForward(least);
    }
    return best_.forward < 0 ? fallback_ : pathOf(best_);
  }

 private:
  struct Best {
    Picoseconds cost = 0;
    int steps = 0;
    int forward = -1;   // last state before the permute, or the goal
    int backward = -1;  // first state after the permute; -1 without one
  };

  int64_t smallestBytes() const {
    int64_t bytes = space_.problem().unitBytes;
    for (int64_t size : space_.problem().sizes) {
      bytes *= size;
    }
    return bytes / space_.ranks();
  }

  Picoseconds limit() const { return best_.cost; }
  Picoseconds permuteTime(int64_t bytes) const { return space_.priceOf(CollectiveKind::kPermute, {}, bytes).time; }

  void offer(const Best& candidate) {
    bool first = best_.forward < 0 && candidate.cost <= best_.cost;
    if (first || std::pair(candidate.cost, candidate.steps) < std::pair(best_.cost, best_.steps)) {
      best_ = candidate;
    }
  }

  void searchDirect() {
    for (int id = forward_.settle(limit()); id >= 0; id = forward_.settle(limit())) {
      settled_.push_back(id);
      const Node& node = forward_.node(id);
      if (node.state == space_.problem().to) {
        offer({node.cost, node.steps, id, -1});
        return;
      }
      forward_.expand(id, limit());
    }
  }

  void searchBackward(Picoseconds permute) {
    for (int id = backward_.settle(limit()); id >= 0; id = backward_.settle(limit())) {
      const Node& node = backward_.node(id);
      if (node.cost + permute > limit()) {
        continue;
      }
      auto [place, fresh] = reached_.try_emplace(space_.signatureOf(node.state), id);
      const Node& known = backward_.node(place->second);
      if (std::pair(node.cost, node.steps) < std::pair(known.cost, known.steps)) {
        place->second = id;
      }
      backward_.expand(id, limit() - permute);
    }
  }

  void searchForward(Picoseconds permute) {
    for (int id : settled_) {
      tryPermute(id);
    }
    for (int id : settled_) {
      if (forward_.node(id).state == space_.problem().to) {
        forward_.expand(id, limit() - permute);
      }
    }
    for (int id = forward_.settle(limit()); id >= 0; id = forward_.settle(limit())) {
      if (forward_.node(id).cost + permute <= limit()) {
        tryPermute(id);
        forward_.expand(id, limit() - permute);
      }
    }
  }

  void tryPermute(int id) {
    const Node& node = forward_.node(id);
    auto found = reached_.find(space_.signatureOf(node.state));
    if (found == reached_.end()) {
      return;
    }
    const Node& after = backward_.node(found->second);
    const Picoseconds cost = node.cost + permuteTime(space_.localBytes(node.state)) + after.cost;
    if (!(node.state == after.state)) {
      offer({cost, node.steps + after.steps + 1, id, found->second});
    }
  }

  Path pathOf(const Best& best) const {
    Path path;
    for (int id = best.forward; forward_.node(id).parent >= 0; id = forward_.node(id).parent) {
      path.push_back({forward_.node(id).move, forward_.node(id).state});
    }
    std::reverse(path.begin(), path.end());
    if (best.backward < 0) {
      return path;
    }
    path.push_back({{CollectiveKind::kPermute, {}, -1, -1}, backward_.node(best.backward).state});
    for (int id = best.backward; backward_.node(id).parent >= 0; id = backward_.node(id).parent) {
      const Node& node = backward_.node(id);
      path.push_back({node.move, backward_.node(node.parent).state});
    }
    return path;
  }

  const Space& space_;
  Sweep forward_;
  Sweep backward_;
  std::vector<int> settled_;
  absl::flat_hash_map<std::string, int> reached_;  // signature to the cheapest state of the backward sweep
  Path fallback_;
  Best best_;
};

// Joins neighbors of one kind on the same dimensions where one step is no dearer than two.
Path joinSteps(const Space& space, Path path) {
  State before = space.problem().from;
  for (size_t i = 0; i + 1 < path.size();) {
    const Move& a = path[i].move;
    const Move& b = path[i + 1].move;
    bool alike = a.kind == b.kind && a.source == b.source && a.target == b.target && a.kind != CollectiveKind::kPermute;
    bool gathers = a.kind == CollectiveKind::kAllGather;  // the second one gathers the major digits
    // An all_to_all that follows another has its digits minor to those that were moved first: no joint group.
    alike = alike && a.kind != CollectiveKind::kAllToAll;
    PathStep joint{a, path[i + 1].after};
    joint.move.axes.clear();
    for (const Move* part : {gathers ? &b : &a, gathers ? &a : &b}) {
      appendDigits(joint.move.axes, part->axes);
    }
    const Price both = stepPrice(space, before, path[i]) + stepPrice(space, path[i].after, path[i + 1]);
    if (alike && stepPrice(space, before, joint).time <= both.time) {
      path[i] = std::move(joint);
      path.erase(path.begin() + static_cast<int64_t>(i) + 1);
    } else {
      before = path[i].after;
      ++i;
    }
  }
  return path;
}

}  // namespace

int Answer::collectives() const {
  return static_cast<int>(std::count_if(path.begin(), path.end(),
                                        [](const PathStep& step) { return step.move.kind != CollectiveKind::kSlice; }));
}

Path cheapestPath(const Space& space) {
  return space.problem().from == space.problem().to ? Path() : joinSteps(space, Search(space).run());
}

}  // namespace weft::reshard
