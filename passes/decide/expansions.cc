#include "passes/decide/expansions.h"

#include <numeric>

#include "ir/layout/stage_mesh_text.h"
#include "planner/check_request.h"
#include "runtime/base/status.h"

namespace weft {

using namespace mlir;  // NOLINT

FailureOr<SmallVector<Value>> Expansions::of(Operation* op, OpBuilder& builder) const {
  FailureOr<SmallVector<Value>> values = (*registry.expansion(op))(op, builder, context);
  if (succeeded(values) && values->size() != op->getNumResults()) {
    return op->emitError() << "its expansion gives " << values->size() << " values, it has " << op->getNumResults()
                           << " results";
  }
  return values;
}

absl::StatusOr<ir::ExpansionContext> expansionContextOf(const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, meshOf(options));
  ir::ExpansionContext context = {mesh.microBatches(), mesh.ranks()};
  if (options.stageMeshes.empty()) {
    return context;
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, parseStageMeshes(options.stageMeshes, mesh.microBatches()));
  for (const Mesh& other : meshes) {
    context.rowParts = std::lcm(context.rowParts, other.ranks());
  }
  return context;
}

}  // namespace weft
