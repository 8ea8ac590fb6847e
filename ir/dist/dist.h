// The dist dialect and its attributes and operators (ir/dist/dist_ops.td).
#pragma once

#include <memory>
#include <string>

#include "ir/assembly.h"
#include "ir/bounded.h"
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

// [[0, 1], [2, 3]] as numbers; empty if it is not a list of lists of integers.
llvm::SmallVector<llvm::SmallVector<int64_t>> groupLists(mlir::ArrayAttr groups);
// The inverse.
mlir::ArrayAttr groupsAttr(mlir::MLIRContext* context, const std::vector<std::vector<int64_t>>& groups);

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

}  // namespace weft::ir::dist
