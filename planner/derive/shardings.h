// What propagation works on: for every operator the axes of its factors, for every argument its layouts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "planner/derive/micro_batches.h"
#include "planner/derive/pads.h"
#include "planner/derive/placement.h"
#include "planner/graph/graph_view.h"

namespace weft {

// A graph with everything that is settled before its layouts are.
struct SettledGraph {
  const GraphView& view;
  Placement placement;
  MicroBatchAnalysis microBatches;
  StoredShapes stored;
  std::vector<int64_t> zeroLevels = {};  // of each argument that is a parameter, 0 of others; empty: 0 of all
  bool regather = false;                 // CompileOptions::regather

  int64_t zeroLevelOf(int argument) const { return zeroLevels.empty() ? 0 : zeroLevels[argument]; }
};

struct OperatorSharding {
  Rule rule;                                  // over stored shapes
  std::vector<int> forwardFactors;            // per factor; see planner/graph/iterations.h
  std::vector<std::optional<AxisList>> axes;  // per factor; nothing = open
  std::vector<bool> fixed;                    // per factor: the user's axes, to which none is added
  FactorAxes kept;                            // per factor: the user's axes, to which others may be added
  AxisList held;                              // of the user's words that are not heard yet
  bool settled = false;                       // decided by price, together with its gradient
  std::map<unsigned, Layout> wanted;          // results whose layout the user asked for
  std::string origin;                         // who decided it; "" nobody yet

  FactorAxes closed() const;  // open factors as not split
  bool splitsAnything() const;
  // Gives a factor the user's axes.
  void fixFactor(size_t factor, const AxisList& wanted);
  // Likewise, but others may be added.
  void keepFactor(size_t factor, const AxisList& wanted);
};

struct ArgumentSharding {
  std::optional<Layout> layout;  // without time axes
  std::string origin;
  std::vector<bool> open = {};  // per dimension of the user's layout: may readers add axes? Empty: none
  bool heard = false;           // a parameter's that flows from the start, as the user gave it a priority

  bool isOpen(size_t dim) const { return dim < open.size() && open[dim]; }
};

struct Shardings {
  std::vector<OperatorSharding> operators;
  // Of each argument, by the numbers of the meshes that read it or own it.
  std::vector<std::map<int64_t, ArgumentSharding>> arguments;
  std::vector<int64_t> ownerStages;  // of each argument
  // Operators with an alternative that a split reached on a whole factor.
  std::vector<int64_t> expansions;
  // What propagation had to choose between, for people.
  std::vector<std::string> conflicts;
};

// Do the stored sizes of an operator's factors divide like this; that of the batch into parts of each micro-batch?
bool divides(const SettledGraph& graph, int op, const Rule& rule, const FactorAxes& axes);
// In compound dimensions a factor may be split only if all factors before it are split to single elements: a rank's
// part is one block.
bool inOneBlock(const DimFactors& dim, const Rule& rule, const FactorAxes& axes);
bool inOneBlock(const Rule& rule, const FactorAxes& axes);

// All factors and layouts open. An argument belongs to the stage where its new value is made; without one where it is
// read first, in the forward pass if it is read there. Error: a rule that does not fit the stored shapes.
absl::StatusOr<Shardings> openShardings(const SettledGraph& graph);

}  // namespace weft
