#include "planner/cost/value_trees.h"

namespace weft {
namespace {

// Of the operands of an operator that is no root; -1: none is in a tree.
int lastOf(const ValueTrees& trees, const GraphView& view, int op) {
  const GraphOperator& node = view.op(op);
  const size_t counted = node.facts.view != ViewKind::kNone ? 1 : node.operands.size();
  int last = -1;
  for (unsigned i = 0; i < counted; ++i) {
    const int operand = view.operandOf(op, i);
    const bool isLater = trees.roots[operand] >= 0 && (last < 0 || trees.roots[operand] > trees.roots[last]);
    last = isLater ? operand : last;
  }
  return last;
}

}  // namespace

ValueTrees valueTrees(const GraphView& view, const std::function<InTree(int op)>& inTree,
                      const std::function<bool(int value)>& counts) {
  ValueTrees trees = {std::vector<int>(view.values(), -1), std::vector<int>(view.values(), -1)};
  for (int op = 0; op < view.operators(); ++op) {
    const InTree mine = inTree(op);
    const int from = mine == InTree::kHangs ? lastOf(trees, view, op) : -1;
    for (unsigned r = 0; r < view.op(op).results.size() && (mine == InTree::kAsRoot || from >= 0); ++r) {
      const int value = view.resultOf(op, r);
      if (counts(value)) {
        trees.roots[value] = mine == InTree::kAsRoot ? op : trees.roots[from];
        trees.parents[value] = from;
      }
    }
  }
  return trees;
}

}  // namespace weft
