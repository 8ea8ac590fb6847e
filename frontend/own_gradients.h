// The gradients of a graph's own operators, for the compiler.
#pragma once

#include "frontend/graph_impl.h"
#include "ir/registry.h"

namespace weft {

// The graph must outlive the registry's use.
void addOwnGradients(GraphImpl& graph, ir::OperatorRegistry& registry);

}  // namespace weft
