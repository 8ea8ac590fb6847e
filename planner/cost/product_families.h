// Products of the forward pass with those of their gradients, which are split alike.
//
// The loops of a gradient's operator are loops of its forward operator (planner/graph/iterations.h), and it has the
// axes of that: where these are decided by price or by the user they are fixed for both, else axes that the forward
// operator leaves may be added (planner/derive/propagation.h). So of the three products that a weight takes part in
// none has a split of its own:
//
//   y = x w            m k+, k+ n -> m n    split over m: rows,  n: columns, k: sums
//   dx = dy w^T        m n+, k n+ -> m k                  rows,     sums,    columns
//   dw = x^T dy        m+ k, m+ n -> k n                  sums,     columns, rows
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "planner/graph/graph_view.h"

namespace weft {

// Of the factors of a product, by which of its tensors have them.
enum ProductRole : uint8_t { kBatch, kRows, kColumns, kSums };
inline constexpr int kRoles = 4;

ProductRole roleIn(const Rule& rule, int factor);

struct ProductFamily {
  std::vector<int> operators;                  // the first is that of the forward pass
  std::vector<std::array<int, kRoles>> roles;  // of each: which role of the first each of its roles is
};

// Of the operators that are products and whose forward operator is one, with two or more members. Left out are
// gradients whose loops are not those of their forward operator, one for one. Error: a rule that does not fit.
absl::StatusOr<std::vector<ProductFamily>> productFamilies(const GraphView& view,
                                                           const std::function<bool(int op)>& isProduct);

}  // namespace weft
