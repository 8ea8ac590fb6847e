// The dist dialect and its attributes and operators (ir/dist/dist_ops.td).
#pragma once

#include <memory>
#include <string>

#include "ir/bounded.h"
#include "ir/dist/assembly.h"
#include "ir/layout/layout.h"
#include "ir/layout/mesh.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "planner/decisions.h"

namespace weft::ir::dist {

// A decisions record that attributes share: the object, and its text, by which records are compared.
class DecisionsRecord {
 public:
  explicit DecisionsRecord(Decisions decisions);

  const Decisions& decisions() const { return shared_->decisions; }
  const std::string& text() const { return shared_->text; }
  bool operator==(const DecisionsRecord& other) const { return text() == other.text(); }

 private:
  struct Shared {
    Decisions decisions;
    std::string text;
  };
  std::shared_ptr<const Shared> shared_;
};
llvm::hash_code hash_value(const DecisionsRecord& record);
mlir::AsmPrinter& operator<<(mlir::AsmPrinter& printer, const DecisionsRecord& record);

}  // namespace weft::ir::dist

template <>
struct mlir::FieldParser<weft::ir::dist::DecisionsRecord> {
  static mlir::FailureOr<weft::ir::dist::DecisionsRecord> parse(mlir::AsmParser& parser);
};

#include "ir/dist/dist_dialect.h.inc"
#include "ir/dist/dist_enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/dist/dist_attrs.h.inc"

#define GET_OP_CLASSES
#include "ir/dist/dist_ops.h.inc"

namespace weft::ir::dist {

// The layout in a tensor type's encoding; everything replicated if there is none. The text was checked against the mesh
// when it was made: a text that does not parse is reported at `at`.
mlir::FailureOr<Layout> layoutOf(mlir::Type type, const Mesh& mesh, mlir::Location at);
bool hasLayout(mlir::Type type);
// The type with this layout as encoding.
mlir::RankedTensorType withLayout(mlir::Type type, const Layout& layout, const Mesh& mesh);

AxesAttr axesAttr(mlir::MLIRContext* context, const AxisList& axes, const Mesh& mesh);
// The space axes over which a collective of `mesh` has groups; null attribute: it has none. Errors are reported at it:
// an axis that the mesh does not have, a time axis, axes that overlap.
AxesAttr overOf(mlir::Operation* collective);
mlir::FailureOr<AxisList> axesOver(mlir::Operation* collective, const Mesh& mesh);
// How many members the groups of a collective of local shapes have, by its shapes; nothing if these do not say.
std::optional<int64_t> membersByShape(mlir::Operation* collective);
// The rank whose tensor each rank receives. Errors are reported at the operator: layouts of which no permutation makes
// the one of the other.
mlir::FailureOr<std::vector<int64_t>> sourcesOf(PermuteOp permute, const Mesh& mesh);

}  // namespace weft::ir::dist
