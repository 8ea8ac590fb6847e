#include "passes/partition/named_tensors.h"

#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR attributes throughout

namespace {

Shape shapeInFiles(Attribute given, const Shape& own) {
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(given)) {
    return {dense.asArrayRef().begin(), dense.asArrayRef().end()};
  }
  auto array = dyn_cast_or_null<ArrayAttr>(given);
  if (!array) {
    return own;
  }
  Shape shape;
  for (Attribute value : array) {
    shape.push_back(cast<IntegerAttr>(value).getInt());
  }
  return shape;
}

}  // namespace

void NamedTensors::add(Value annotated, const Layout& layout, const TensorNames& names, Attribute fileShape) {
  Builder builder(annotated.getContext());
  const Shape shape = ir::shapeOf(annotated);
  SmallVector<Attribute> offsets;
  SmallVector<Attribute> valid;
  for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
    const Slice slice = layout.slice(shape, mesh_, rank, 0);
    offsets.push_back(builder.getDenseI64ArrayAttr(slice.offset));
    valid.push_back(builder.getDenseI64ArrayAttr(slice.valid));
  }
  NamedAttrList attrs;
  attrs.set("name", builder.getStringAttr(names.name));
  attrs.set("kind", builder.getStringAttr(names.kind));
  attrs.set("value", builder.getStringAttr(names.buffer));
  attrs.set("type", builder.getStringAttr(dtypeName(ir::dtypeOf(annotated.getType()).value_or(DType::kF32))));
  attrs.set("shape", builder.getDenseI64ArrayAttr(shape));
  attrs.set("file_shape", builder.getDenseI64ArrayAttr(shapeInFiles(fileShape, shape)));
  attrs.set("offsets", builder.getArrayAttr(offsets));
  attrs.set("valid", builder.getArrayAttr(valid));
  tensors_.push_back(attrs.getDictionary(annotated.getContext()));
}

void NamedTensors::write(ModuleOp module) const {
  module->setAttr(kTensorsAttr, ArrayAttr::get(module.getContext(), tensors_));
}

}  // namespace weft
