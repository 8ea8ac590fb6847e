// Trees of values that go out from operators, their roots.
//
// What other operators make of values hangs on one that they read: the one whose root comes last. So of a stream of
// residuals what was added last counts, not the stream. A view hangs on what it shows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/graph/graph_view.h"

namespace weft {

enum class InTree : uint8_t {
  kNo,  // what it makes is in no tree
  kAsRoot,
  kHangs,  // what it makes hangs on what it reads
};

struct ValueTrees {
  std::vector<int> roots;    // of each value: an operator; -1: it is in no tree
  std::vector<int> parents;  // of each value: that which it hangs on; -1: its root makes it, or it is in no tree
};

// Of the values that count.
ValueTrees valueTrees(const GraphView& view, const std::function<InTree(int op)>& inTree,
                      const std::function<bool(int value)>& counts);

}  // namespace weft
