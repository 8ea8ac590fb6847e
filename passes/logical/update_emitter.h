// What appends operators of the update to @step: values, state with its next values, constants.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/program/signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace weft {

// The step count, which operators of the graph read too.
inline constexpr char kStepCountState[] = "step";

class UpdateEmitter {
 public:
  explicit UpdateEmitter(mlir::func::FuncOp step);

  mlir::OpBuilder& builder() { return builder_; }
  SignatureBuilder& signature() { return signature_; }
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }

  // An operator of the phase "update"; null, and failed() from then on, where it cannot be made.
  mlir::Operation* create(mlir::Location loc, llvm::StringRef mnemonic, mlir::ValueRange operands,
                          mlir::NamedAttrList attrs = {});
  // Its result 0.
  mlir::Value value(mlir::Location loc, llvm::StringRef mnemonic, mlir::ValueRange operands,
                    mlir::NamedAttrList attrs = {});
  // A constant scalar; one operator for each type and value.
  mlir::Value scalar(mlir::Type element, double value);

  static mlir::Type elementOf(mlir::Value value);

  mlir::NamedAttrList named(llvm::StringRef kind, const std::string& name);
  // The state argument `name`, made with a constant first value on first use. Error, and failed() from then on: the
  // user's graph has a tensor of this name; it may have the step count.
  mlir::Value state(const std::string& name, mlir::Type type, double first);
  // `next` replaces the argument after the step.
  void replace(mlir::Value argument, mlir::Value next);

 private:
  mlir::func::FuncOp step_;
  mlir::OpBuilder builder_;
  SignatureBuilder signature_;
  std::map<std::pair<const void*, double>, mlir::Value> scalars_;
  std::set<std::string> made_;  // states
  bool failed_ = false;
};

}  // namespace weft
