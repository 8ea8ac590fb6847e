#include "planner/cost/product_reads.h"

#include <algorithm>

namespace weft {

std::vector<ProductRead> productReads(const GraphView& view, const ValueTrees& trees,
                                      const std::function<bool(int op)>& isProduct) {
  std::vector<double> least(view.values(), 0);  // of each value in a tree: from its root to it
  std::vector<ProductRead> reads;
  for (int op = 0; op < view.operators(); ++op) {
    for (unsigned i = 0; i < view.op(op).operands.size() && isProduct(op); ++i) {
      const int value = view.operandOf(op, i);
      const int maker = trees.roots[value];
      if (maker >= 0 && isProduct(maker)) {
        reads.push_back({maker, op, i, least[value]});
      }
    }
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      const int value = view.resultOf(op, r);
      const auto mine = static_cast<double>(view.typeOf(value).bytes());
      const int parent = trees.parents[value];
      least[value] = parent < 0 ? mine : std::min(mine, least[parent]);
    }
  }
  return reads;
}

}  // namespace weft
