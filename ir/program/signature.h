// Appends arguments and results to a function whose arguments have names, and gives it its type and attributes once, at
// the end. addArgument and addResult (program.h) do that in every call, which is quadratic in the parameters of a
// model.
//
//   SignatureBuilder signature(step);
//   Value rate = signature.addArgument(type, attributes, place);   // may be read at once
//   signature.addResult(value, attributes);
//   signature.finish();                                            // until then the function does not verify
#pragma once

#include <string>
#include <vector>

#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

class SignatureBuilder {
 public:
  explicit SignatureBuilder(mlir::func::FuncOp function);

  // The argument of that nn.name, one that was there or was added; null if there is none.
  mlir::BlockArgument argument(llvm::StringRef name);
  const std::string& nameOf(mlir::BlockArgument argument) const { return names_[argument.getArgNumber()]; }

  mlir::BlockArgument addArgument(mlir::Type type, const mlir::NamedAttrList& attributes, mlir::Location place);
  void addResult(mlir::Value value, const mlir::NamedAttrList& attributes);
  void finish();

 private:
  mlir::func::FuncOp function_;
  std::vector<std::string> names_;     // of the arguments
  llvm::StringMap<unsigned> numbers_;  // of the arguments, by name
  llvm::SmallVector<mlir::DictionaryAttr> newArguments_;
  llvm::SmallVector<mlir::Value> values_;
  llvm::SmallVector<mlir::DictionaryAttr> newResults_;
};

}  // namespace weft
