// The layouts of the values of an annotated function, as their types say.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/program/module_meshes.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace weft {

// Each text is parsed once for each mesh it is read on. A value's layout is the canonical form of what it was given.
class ValueLayouts {
 public:
  explicit ValueLayouts(ModuleMeshes meshes) : meshes_(std::move(meshes)) {}

  // Reads the layouts of all values of the function. Errors, at a value: it has no layout, or one that its mesh does
  // not know.
  mlir::LogicalResult read(mlir::func::FuncOp function);

  // In which layouts an operator reads its operands (dist.reads). Errors, at the operator: it does not say, or says
  // what its operands or its mesh do not fit.
  mlir::FailureOr<std::vector<const Layout*>> readsOf(mlir::Operation* op);

  // The layout of a value that was read or set.
  const Layout& of(mlir::Value value) const;
  // Gives a value another layout, by its type.
  void set(mlir::Value value, const Layout& layout);
  // Stored global shapes, as rules are parsed with.
  std::vector<Shape> stored(mlir::ValueRange values) const;

  const ModuleMeshes& meshes() const { return meshes_; }

 private:
  using Key = std::pair<mlir::Attribute, int64_t>;  // text, number of the mesh

  // Null if the mesh does not know the layout, which is then reported at `place`.
  const Layout* parse(ir::dist::LayoutAttr text, int64_t mesh, mlir::Location place);
  mlir::LogicalResult parse(mlir::Value value);

  ModuleMeshes meshes_;
  llvm::DenseMap<Key, std::unique_ptr<Layout>> parsed_;
};

}  // namespace weft
