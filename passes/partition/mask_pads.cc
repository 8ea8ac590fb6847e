// Masks the pads that matter to an operator (planner/step/pad_masks.h). One mask serves the readers that share its
// operand.

#include <tuple>

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/decide/build_program_graph.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "passes/partition/value_layouts.h"
#include "planner/step/pad_masks.h"

namespace weft {

#define GEN_PASS_DEF_MASKPADSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// Does `op` make one of the values behind operand `operand` of its reader, by reshards alone?
bool leadsTo(Operation* op, Value operand) {
  while (auto reshard = operand.getDefiningOp<ir::dist::ReshardOp>()) {
    if (reshard == op) {
      return true;
    }
    operand = reshard.getX();
  }
  return false;
}

class PadMasker {
 public:
  PadMasker(const Decisions& decisions, ValueLayouts& layouts) : gathers_(decisions), layouts_(layouts) {}

  LogicalResult visit(Operation* op) {
    const auto padded = [&](Value value) { return layouts_.of(value).hasPad(); };
    if (!isa<ir::OperatorInterface>(op) || llvm::none_of(op->getOperands(), padded)) {
      return success();
    }
    FailureOr<OperatorFacts> facts = factsOf(op);
    if (failed(facts)) {
      return failure();
    }
    absl::StatusOr<Rule> rule =
        Rule::parse(facts->rule, layouts_.stored(op->getOperands()), layouts_.stored(op->getResults()));
    if (!rule.ok()) {
      return op->emitError(std::string(rule.status().message()));
    }
    std::vector<DType> types;
    for (Value operand : op->getOperands()) {
      types.push_back(ir::dtypeOf(operand.getType()).value_or(DType::kF32));
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (failed(maskOperand(op, i, padMasks(*facts, *rule, i, types, layouts_.of(op->getOperand(i)))))) {
        return failure();
      }
    }
    return success();
  }

 private:
  LogicalResult maskOperand(Operation* op, unsigned index, const std::vector<PadMask>& masks) {
    if (masks.empty()) {
      return success();
    }
    Operation* before = insertionPoint(op, index);
    for (const PadMask& mask : masks) {
      Value value = op->getOperand(index);
      if (!mask.fill) {
        return op->emitError() << labelOf(op) << " cannot run on a padded dimension (" << ir::shapeOf(value)[mask.dim]
                               << " stored as " << layouts_.of(value).pad(mask.dim) << "); split another dimension";
      }
      op->setOperand(index, masked(value, static_cast<int64_t>(mask.dim), *mask.fill, {op, before}));
    }
    return success();
  }

  // A mask stands behind the reshards of its own operand, before those of the next.
  static Operation* insertionPoint(Operation* op, unsigned index) {
    Operation* before = op;
    for (unsigned later = op->getNumOperands() - 1; later > index; --later) {
      for (Operation* previous = before->getPrevNode();
           previous != nullptr && leadsTo(previous, op->getOperand(later)) && !leadsTo(previous, op->getOperand(index));
           previous = before->getPrevNode()) {
        before = previous;
      }
    }
    return before;
  }

  struct Reader {
    Operation* op;
    Operation* before;  // where what it reads is made
  };

  Value masked(Value value, int64_t dim, double fill, const Reader& reader) {
    const Place place = placeOf(reader.op);
    Value& known = made_[{value.getAsOpaquePointer(), dim, fill, regionOf(gathers_.of(value), place)}];
    if (!known) {
      OpBuilder builder(reader.before);
      auto made = builder.create<ir::dist::MaskPadOp>(
          reader.op->getLoc(), value.getType(), value, builder.getDenseI64ArrayAttr(dim),
          builder.getDenseI64ArrayAttr(ir::shapeOf(value)[dim]), builder.getF64FloatAttr(fill), IntegerAttr(),
          IntegerAttr(), IntegerAttr());
      setPlace(made, place);
      made->setAttr(kNameAttr, builder.getStringAttr(labelOf(reader.op) + "/mask"));
      known = made.getY();
    }
    return known;
  }

  using Key = std::tuple<const void*, int64_t, double, ReaderRegion>;  // value, dimension, fill

  GatherPolicies gathers_;
  ValueLayouts& layouts_;
  std::map<Key, Value> made_;
};

class MaskPadsPass : public impl::MaskPadsPassBase<MaskPadsPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = recordOf(getOperation());
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
    if (decisions == nullptr || failed(meshes)) {
      return signalPassFailure();
    }
    func::FuncOp step = stepFunction(module);
    ValueLayouts layouts(*std::move(meshes));
    if (failed(layouts.read(step))) {
      return signalPassFailure();
    }
    PadMasker masker(*decisions, layouts);
    for (Operation& op : step.getBody().front().without_terminator()) {
      if (failed(masker.visit(&op))) {
        return signalPassFailure();
      }
    }
    numMasks += llvm::range_size(step.getOps<ir::dist::MaskPadOp>());
  }
};

}  // namespace
}  // namespace weft
