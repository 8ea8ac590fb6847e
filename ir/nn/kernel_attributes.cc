#include "ir/nn/kernel_attributes.h"

#include <optional>

#include "ir/nn/nn.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace weft::ir {
namespace {

std::optional<Attribute> convert(mlir::Attribute attribute) {
  if (auto value = llvm::dyn_cast<mlir::BoolAttr>(attribute)) {
    return Attribute(int64_t{value.getValue() ? 1 : 0});
  }
  if (auto value = llvm::dyn_cast<mlir::IntegerAttr>(attribute)) {
    return Attribute(value.getInt());
  }
  if (auto value = llvm::dyn_cast<mlir::FloatAttr>(attribute)) {
    return Attribute(value.getValueAsDouble());
  }
  if (auto value = llvm::dyn_cast<mlir::StringAttr>(attribute)) {
    return Attribute(value.str());
  }
  if (auto value = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(attribute)) {
    return Attribute(std::vector<int64_t>(value.asArrayRef()));
  }
  if (auto value = llvm::dyn_cast<mlir::DenseF64ArrayAttr>(attribute)) {
    return Attribute(std::vector<double>(value.asArrayRef()));
  }
  return std::nullopt;
}

}  // namespace

AttributeMap kernelAttributes(mlir::Operation* op) {
  AttributeMap map;
  for (mlir::NamedAttribute attribute : op->getAttrDictionary()) {
    const llvm::StringRef name = attribute.getName().getValue();
    const bool isFact = llvm::isa<nn::CustomOp>(op) && llvm::is_contained(nn::CustomOp::getAttributeNames(), name);
    if (name.contains('.') || isFact) {
      continue;
    }
    if (std::optional<Attribute> value = convert(attribute.getValue())) {
      map.emplace(attribute.getName().str(), *std::move(value));
    }
  }
  return map;
}

}  // namespace weft::ir
