// The prices of reshards, each found once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/layout/reshard.h"
#include "planner/assign/eliminate.h"
#include "planner/derive/shardings.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// What is known of prices so far, and of splits that took long to decide by them. Programs on one machine may share it:
// a search derives much the same again and again.
class ReshardMemo {
 public:
  struct Price {
    std::optional<Picoseconds> least;  // never more than `time`, and found without looking for a path
    std::optional<Picoseconds> time;
  };
  // A problem whose assignment was searched, as it was before any path was looked for.
  struct Searched {
    AssignmentProblem problem;
    std::vector<std::pair<const Price*, int64_t>> reshards;  // in it, and how often each counts
    double slack = 0;
    std::vector<int> begin;  // what was known before
    std::vector<int> values;
  };
  // Shape, type, how often, number of the space, layouts.
  using LayoutKey = std::pair<AxisLists, AxisList>;
  using Key = std::tuple<Shape, DType, int64_t, int64_t, LayoutKey, LayoutKey>;

  // The number of a mesh on a machine with those latencies.
  int64_t space(const Mesh& mesh, const Machine& machine);
  absl::node_hash_map<Key, Price>& prices() { return prices_; }
  std::vector<Searched>& searched() { return searched_; }

 private:
  std::map<std::string, int64_t> spaces_;
  absl::node_hash_map<Key, Price> prices_;  // which stay where they are
  std::vector<Searched> searched_;
};

class ReshardPrices {
 public:
  // `memo` outlives it.
  ReshardPrices(const SettledGraph& graph, const Machine& machine, ReshardMemo& memo);

  // Of a value on a mesh, in all micro-batches of a step. Error: a reshard that cannot be planned.
  absl::StatusOr<Picoseconds> of(int value, int64_t mesh, const Layout& from, const Layout& to);
  // A price that has `least`, and stays where it is: equal reshards of equal values have one.
  absl::StatusOr<const ReshardMemo::Price*> atLeast(int value, int64_t mesh, const Layout& from, const Layout& to);

 private:
  // What is resharded at once, and how often in a step.
  struct Volume {
    Shape shape;
    DType type;
    int64_t times = 1;
  };
  Volume volumeOf(int value, int64_t mesh, const Layout& from, const Layout& to) const;
  ReshardMemo::Key keyOf(const Volume& volume, int64_t mesh, const Layout& from, const Layout& to) const;

  const SettledGraph& graph_;
  ReshardMemo& memo_;
  std::vector<int64_t> spaces_;                            // by number of the mesh
  std::vector<std::unique_ptr<ReshardPlanner>> planners_;  // likewise
};

}  // namespace weft
