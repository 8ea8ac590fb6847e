// One operator of the dialect on arguments of given shapes, in a module of its own: what it says of itself can be
// asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "tools/commands/operator_attributes.h"

namespace weft::tools {

// What a user writes of an operator beside its attributes: shapes as "16,32:32,16", types as "f32,i32".
struct OperatorWords {
  std::string shapes;                       // of its operands; "" of one without operands
  std::optional<std::string> results = {};  // where they do not follow, or to find attributes from
  std::string types = {};                   // "": those that the operator takes
};

class OperatorSite {
 public:
  OperatorSite();

  // The operators there are, without the dialect's name. `custom` stands for a user's own.
  std::vector<std::string> operators();

  // The operator, until the next is made. Errors: no such operator, with the nearest; what does not follow from the
  // words, with an example; what the operator refuses.
  absl::StatusOr<mlir::Operation*> make(const OperatorWords& words, OperatorRequest request);

 private:
  absl::StatusOr<mlir::Operation*> create(const OperatorRequest& request, mlir::TypeRange operands);

  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

}  // namespace weft::tools
