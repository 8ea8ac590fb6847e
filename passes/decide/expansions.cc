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
  int64_t rowParts = mesh.ranks();
  if (!options.stageMeshes.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, parseStageMeshes(options.stageMeshes, mesh.microBatches()));
    for (const Mesh& other : meshes) {
      rowParts = std::lcm(rowParts, other.ranks());
    }
  }
  return ir::ExpansionContext(mesh.microBatches(), rowParts);
}

}  // namespace weft
