// Cuts the stages' graphs into blocks, and finds the equal ones.
//
// A cut is possible where a single value passes from the operators before it to those after it: the residual stream of
// a transformer, a chain's link. That value is kept when anything needs it, so blocks can be decided one by one. The
// smallest blocks between cuts are joined again, the most frequent pair of neighbours first, while the joined block has
// few enough candidates for an exact choice: halves of layers become layers, layers that do little become pairs.
#pragma once

#include <vector>

#include "passes/choose/recompute_graph.h"

namespace weft::recompute {

// Operators first, ..., last - 1 of a stage's graph.
struct Block {
  int stage = 0;  // index of the graph
  int first = 0;
  int last = 0;
  int blockClass = 0;  // index into the classes
};

struct Blocks {
  std::vector<Block> blocks;   // in order
  std::vector<Graph> classes;  // what a block of each class looks like
};

Blocks cutIntoBlocks(const std::vector<Graph>& stages);

// Operators first, ..., last - 1 as a graph of their own. What they read of others counts as kept by those where the
// backward pass reads it too. What others read of them must be there: its operator may not be repeated.
Graph blockOf(const Graph& stage, int first, int last);

}  // namespace weft::recompute
