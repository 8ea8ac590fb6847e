// A context with Weft's dialects, and modules from text.
#pragma once

#include <string>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace weft::testing {

class Modules {
 public:
  Modules() { context_.loadDialect<mlir::func::FuncDialect, ir::nn::NnDialect, ir::dist::DistDialect>(); }
  mlir::MLIRContext* context() { return &context_; }
  // Null if the text is wrong; the diagnostic goes to the standard error output.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
  }

 private:
  mlir::MLIRContext context_;
};

}  // namespace weft::testing
