// What collectives say of ranks: the axes of their groups, and who receives from whom.
#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weft::ir::dist {

using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;

AxesAttr axesAttr(mlir::MLIRContext* context, const AxisList& axes, const Mesh& mesh) {
  // A layout of one dimension, without its brackets.
  const std::string text = Layout({axes}).canonical().print(mesh);
  return AxesAttr::get(context, text.substr(1, text.size() - 2));
}

AxesAttr overOf(Operation* collective) {
  return llvm::TypeSwitch<Operation*, AxesAttr>(collective)
      .Case<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp>([](auto op) { return op.getOver(); })
      .Default([](Operation*) { return AxesAttr(); });
}

FailureOr<AxisList> axesOver(Operation* collective, const Mesh& mesh) {
  const llvm::StringRef text = overOf(collective).getText();
  absl::StatusOr<Layout> layout = Layout::parse(("[" + text + "]").str(), mesh);
  if (!layout.ok()) {
    return collective->emitError() << "over " << text << ": " << std::string(layout.status().message()), failure();
  }
  for (const Axis& axis : layout->dim(0)) {
    if (axis.kind == AxisKind::kTime) {
      return collective->emitError() << "over " << text << ": " << mesh.name(axis) << " is a time axis of mesh "
                                     << mesh.print() << "; ranks differ in space axes",
             failure();
    }
  }
  return layout->dim(0);
}

std::optional<int64_t> membersByShape(Operation* collective) {
  const auto times = [&](int64_t dim, bool grows) -> std::optional<int64_t> {
    const auto size = [&](mlir::Value value) {
      return llvm::cast<mlir::RankedTensorType>(value.getType()).getDimSize(static_cast<unsigned>(dim));
    };
    const int64_t before = size(collective->getOperand(0));
    const int64_t after = size(collective->getResult(0));
    return grows ? after / before : before / after;
  };
  return llvm::TypeSwitch<Operation*, std::optional<int64_t>>(collective)
      .Case<AllGatherOp, AllToAllOp>([&](auto op) { return times(op.getDim(), true); })
      .Case([&](ReduceScatterOp op) { return times(op.getDim(), false); })
      .Default([](Operation*) { return std::nullopt; });
}

FailureOr<std::vector<int64_t>> sourcesOf(PermuteOp permute, const Mesh& mesh) {
  std::vector<Layout> layouts;
  for (LayoutAttr attribute : {permute.getFrom(), permute.getTo()}) {
    absl::StatusOr<Layout> layout = Layout::parse(attribute.getText().str(), mesh);
    if (!layout.ok()) {
      return permute.emitError() << attribute << ": " << std::string(layout.status().message()), failure();
    }
    layouts.push_back(*std::move(layout));
  }
  std::vector<int64_t> sources = permuteSources(layouts[0], layouts[1], mesh);
  if (sources.empty()) {
    return permute.emitError() << "no permutation of the ranks of mesh " << mesh.print() << " brings a tensor from "
                               << layouts[0].print(mesh) << " to " << layouts[1].print(mesh),
           failure();
  }
  return sources;
}

}  // namespace weft::ir::dist
