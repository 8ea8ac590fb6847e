// The tensors of a submesh that the host knows by name: what of each lies on which rank.
#pragma once

#include <string>
#include <vector>

#include "ir/layout/layout.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

struct TensorNames {
  std::string name;
  std::string kind;    // "input", "parameter", "state", "output"
  std::string buffer;  // dist.value of its buffer
};

class NamedTensors {
 public:
  explicit NamedTensors(const Mesh& mesh) : mesh_(mesh) {}

  // `fileShape`: the shape in files, as nn.file_shape says it; null: the tensor's own.
  void add(mlir::Value annotated, const Layout& layout, const TensorNames& names, mlir::Attribute fileShape);

  // dist.tensors of the submesh's module.
  void write(mlir::ModuleOp module) const;

 private:
  Mesh mesh_;
  std::vector<mlir::Attribute> tensors_;
};

}  // namespace weft
