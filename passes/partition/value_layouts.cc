#include "passes/partition/value_layouts.h"

#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

Attribute encodingOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getEncoding();
}

}  // namespace

LogicalResult ValueLayouts::read(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    if (failed(parse(argument))) {
      return failure();
    }
  }
  for (Operation& op : function.getBody().front().without_terminator()) {
    for (Value result : op.getResults()) {
      if (failed(parse(result))) {
        return failure();
      }
    }
  }
  return success();
}

const Layout* ValueLayouts::parse(ir::dist::LayoutAttr text, int64_t mesh, Location place) {
  std::unique_ptr<Layout>& known = parsed_[{text, mesh}];
  if (!known) {
    absl::StatusOr<Layout> layout = Layout::parse(text.getText().str(), meshes_.withNumber(mesh));
    if (!layout.ok()) {
      emitError(place) << "on mesh " << meshes_.withNumber(mesh).print() << ": "
                       << std::string(layout.status().message());
      return nullptr;
    }
    known = std::make_unique<Layout>(layout->canonical());
  }
  return known.get();
}

LogicalResult ValueLayouts::parse(Value value) {
  auto text = dyn_cast_or_null<ir::dist::LayoutAttr>(encodingOf(value));
  if (!text) {
    return emitError(value.getLoc()) << "value has no layout; run --weft-assign-layouts first";
  }
  return success(parse(text, meshes_.number(value), value.getLoc()) != nullptr);
}

FailureOr<std::vector<const Layout*>> ValueLayouts::readsOf(Operation* op) {
  const ArrayAttr texts = ::weft::readsOf(op);
  if (!texts || texts.size() != op->getNumOperands()) {
    return op->emitError() << labelOf(op) << " has " << op->getNumOperands() << " operands and "
                           << (texts ? texts.size() : 0)
                           << " layouts to read them in (dist.reads); run --weft-assign-layouts first",
           failure();
  }
  std::vector<const Layout*> reads;
  for (auto [text, operand] : llvm::zip(texts.getAsRange<ir::dist::LayoutAttr>(), op->getOperands())) {
    const Layout* layout = parse(text, meshes_.number(op), op->getLoc());
    if (layout == nullptr) {
      return failure();
    }
    const int64_t dimensions = cast<RankedTensorType>(operand.getType()).getRank();
    if (static_cast<int64_t>(layout->dimensions()) != dimensions) {
      return op->emitError() << labelOf(op) << " reads an operand of " << dimensions << " dimensions as "
                             << text.getText() << "; the layout needs as many",
             failure();
    }
    reads.push_back(layout);
  }
  return reads;
}

const Layout& ValueLayouts::of(Value value) const {
  return *parsed_.find({encodingOf(value), meshes_.number(value)})->second;
}

void ValueLayouts::set(Value value, const Layout& layout) {
  const Layout canonical = layout.canonical();
  value.setType(ir::dist::withLayout(value.getType(), canonical, meshes_.of(value)));
  std::unique_ptr<Layout>& known = parsed_[{encodingOf(value), meshes_.number(value)}];
  if (!known) {
    known = std::make_unique<Layout>(canonical);
  }
}

std::vector<Shape> ValueLayouts::stored(ValueRange values) const {
  std::vector<Shape> shapes;
  for (Value value : values) {
    shapes.push_back(of(value).storedShape(ir::shapeOf(value)));
  }
  return shapes;
}

}  // namespace weft
