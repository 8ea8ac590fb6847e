#include "planner/assign/model.h"

namespace weft::assign {

Cost costOf(const Model& model, const std::vector<int>& values) {
  Cost sum = 0;
  for (int v = 0; v < model.variables(); ++v) {
    sum = plus(sum, model.costs[v][values[v]]);
  }
  for (const Edge& edge : model.edges) {
    sum = plus(sum, viewOf(model, edge, edge.first).at(values[edge.first], values[edge.second]));
  }
  return sum;
}

}  // namespace weft::assign
