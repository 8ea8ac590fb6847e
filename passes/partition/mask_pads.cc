// Masks pads: an operand with a padded dimension that the operator reduces over or needs whole is filled, beyond the
// tensor's own elements, with what changes nothing (0 for a sum). One mask serves the readers that share its operand.

#include <limits>
#include <optional>
#include <tuple>

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "passes/partition/value_layouts.h"

namespace weft {

#define GEN_PASS_DEF_MASKPADSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// The value that changes nothing in a reduction.
double neutral(ReduceKind kind) {
  const double infinity = std::numeric_limits<double>::infinity();
  return kind == ReduceKind::kSum ? 0.0 : kind == ReduceKind::kMax ? -infinity : infinity;
}

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
  PadMasker(const Decisions& decisions, ValueLayouts& layouts) : readers_(decisions), layouts_(layouts) {}

  LogicalResult visit(Operation* op) {
    const auto padded = [&](Value value) {
      return layouts_.of(value).hasPad() && isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
    };
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    if (!interface || llvm::none_of(op->getOperands(), padded)) {
      return success();
    }
    absl::StatusOr<Rule> rule =
        Rule::parse(interface.getRule(), layouts_.stored(op->getOperands()), layouts_.stored(op->getResults()));
    if (!rule.ok()) {
      return op->emitError(std::string(rule.status().message()));
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (padded(op->getOperand(i)) && failed(maskOperand(interface, i, *rule))) {
        return failure();
      }
    }
    return success();
  }

 private:
  LogicalResult maskOperand(ir::OperatorInterface op, unsigned index, const Rule& rule) {
    Operation* before = insertionPoint(op, index);
    const Layout layout = layouts_.of(op->getOperand(index));
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      if (layout.pad(d) == 0 || rule.operands()[index][d].empty()) {
        continue;
      }
      const int factor = rule.operands()[index][d].front();
      const Need need = needOf(op, index, rule, factor);
      if (!need.matters) {
        continue;
      }
      Value value = op->getOperand(index);
      const int64_t size = ir::shapeOf(value)[d];
      if (!need.fill) {
        return op->emitError() << labelOf(op) << " cannot run on a padded dimension (" << size << " stored as "
                               << layout.pad(d) << "); split another dimension";
      }
      op->setOperand(index, masked(value, static_cast<int64_t>(d), *need.fill, {op, before}));
    }
    return success();
  }

  // Does it matter to an operator what the pad of a factor holds, and what must that be? Nothing: it cannot run on it.
  struct Need {
    bool matters = false;
    std::optional<double> fill;
  };

  static Need needOf(ir::OperatorInterface op, unsigned index, const Rule& rule, int factor) {
    if (rule.factors()[factor].whole) {
      return {true, op.getPadFill(index)};
    }
    Need need;
    for (unsigned r = 0; r < rule.results().size(); ++r) {
      if (rule.reducedIn(factor, r)) {
        need = {true, neutral(op.getReduceKind(r))};
      }
    }
    return need;
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
    Value& known = made_[{value.getAsOpaquePointer(), dim, fill, readers_.regionOf(value, place)}];
    if (!known) {
      OpBuilder builder(reader.before);
      auto made = builder.create<ir::dist::MaskPadOp>(
          reader.op->getLoc(), value.getType(), value, builder.getDenseI64ArrayAttr(dim),
          builder.getDenseI64ArrayAttr(ir::shapeOf(value)[dim]), builder.getF64FloatAttr(fill));
      setPlace(made, place);
      made->setAttr(kNameAttr, builder.getStringAttr(labelOf(reader.op) + "/mask"));
      known = made.getY();
    }
    return known;
  }

  using Key = std::tuple<const void*, int64_t, double, Region>;  // value, dimension, fill

  Readers readers_;
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
