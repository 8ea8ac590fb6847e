// Every strategy that an operator's rule allows on a mesh, as a user would write it.
#pragma once

#include <string>
#include <vector>

#include "ir/layout/mesh.h"
#include "planner/graph/graph_view.h"

namespace weft::testing {

// Every way to give each axis of the mesh to one factor, or to none. Empty where the rule does not fit.
std::vector<UserStrategy> strategiesOf(const GraphView& view, int op, const Mesh& mesh);

// "(dp|) (|tp)".
std::string printed(const UserStrategy& strategy);

}  // namespace weft::testing
