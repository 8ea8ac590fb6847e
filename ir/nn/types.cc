#include "ir/nn/types.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace weft::ir {

std::optional<DType> dtypeOf(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  for (DType candidate :
       {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI32, DType::kI64, DType::kBool}) {
    if (element == elementTypeOf(type.getContext(), candidate)) {
      return candidate;
    }
  }
  return std::nullopt;
}

bool isFloat(mlir::Value tensor) {
  return mlir::isa<mlir::FloatType>(mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType());
}

mlir::Type elementTypeOf(mlir::MLIRContext* context, DType type) {
  mlir::Builder builder(context);
  switch (type) {
    case DType::kF32:
      return builder.getF32Type();
    case DType::kF64:
      return builder.getF64Type();
    case DType::kBF16:
      return builder.getBF16Type();
    case DType::kF16:
      return builder.getF16Type();
    case DType::kI32:
      return builder.getI32Type();
    case DType::kI64:
      return builder.getI64Type();
    case DType::kBool:
      return builder.getI1Type();
  }
  return {};
}

}  // namespace weft::ir
