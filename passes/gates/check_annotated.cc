// The annotated state: layouts fit tensors, and operators.
//
// Fitting an operator means: there is one choice of axes for its factors from which its rule gives the layout of every
// operand and every result. The choice is read off the operands and compared; so a missing reshard is found here, at
// the user's line, and not as a wrong number later. Sums: an operand may be partial only together with all operands of
// one of the operator's linear sets, over the same axes, and the results are then partial over those axes and over the
// factors that they lack.
//
// On the way to this state (laid out) values have layouts already, but what brings them to their readers is missing:
// then layouts fit tensors, and the record fits the program.

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "passes/gates/attribute_forms.h"
#include "passes/gates/check_decisions.h"
#include "passes/gates/check_program.h"
#include "passes/gates/check_stages.h"
#include "passes/gates/checks.h"
#include "planner/step/time_layouts.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

bool isFunctionName(StringRef name) {
  return name == "prologue" || name == "forward" || name == "backward" || name == "update";
}

AxisList canonical(const AxisList& axes) {
  return Layout({axes}).canonical().dim(0);
}

std::vector<Partial> canonical(const std::vector<Partial>& partial) {
  return Layout({}, partial).canonical().partial();
}

std::string namesOf(const AxisList& axes, const Mesh& mesh) {
  std::string text;
  for (const Axis& axis : axes) {
    text += (text.empty() ? "" : ",") + mesh.name(axis);
  }
  return text.empty() ? "no axis" : text;
}

std::string partialText(const std::vector<Partial>& partial, const Mesh& mesh) {
  return partial.empty() ? "nothing" : Layout({}, partial).print(mesh).substr(3);
}

// One operator against its rule.
class OperatorChecker {
 public:
  OperatorChecker(ir::OperatorInterface op, const Mesh& mesh, std::vector<Layout> operands, std::vector<Layout> results)
      : op_(op), mesh_(mesh), operands_(std::move(operands)), results_(std::move(results)) {}

  LogicalResult run() {
    absl::StatusOr<Rule> rule =
        Rule::parse(op_.getRule(), stored(op_->getOperands(), operands_), stored(op_->getResults(), results_));
    if (!rule.ok()) {
      return op_->emitError(std::string(rule.status().message()));
    }
    rule_ = *std::move(rule);
    axes_.resize(rule_.factors().size());
    saidBy_.resize(rule_.factors().size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (failed(compare("operand " + std::to_string(i), operands_[i], rule_.operands()[i],
                         rule_.projectOperand(i, operands_[i])))) {
        return failure();
      }
    }
    for (size_t r = 0; r < results_.size(); ++r) {
      if (failed(compare("result " + std::to_string(r), results_[r], rule_.results()[r],
                         rule_.projectResult(r, results_[r])))) {
        return failure();
      }
    }
    if (absl::Status status = rule_.check(axes_, mesh_, padded_); !status.ok()) {
      return op_->emitError() << op_->getName() << ": " << std::string(status.message());
    }
    return checkPartial();
  }

 private:
  static std::vector<Shape> stored(ValueRange values, const std::vector<Layout>& layouts) {
    std::vector<Shape> shapes;
    for (const auto& [value, layout] : llvm::zip(values, layouts)) {
      shapes.push_back(layout.storedShape(ir::shapeOf(value)));
    }
    return shapes;
  }

  LogicalResult compare(const std::string& tensor, const Layout& layout, const std::vector<DimFactors>& dims,
                        const Rule::Projection& projection) {
    if (!projection.overflow.empty()) {
      return op_->emitError() << tensor << " of " << op_->getName() << " lies as " << layout.print(mesh_)
                              << ", but its rule '" << rule_.text() << "' has no factor that "
                              << namesOf(projection.overflow, mesh_) << " could split";
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      for (const int f : dims[d]) {
        if (failed(compareFactor(f, canonical(projection.axes[f]), tensor))) {
          return failure();
        }
        if (layout.pad(d) != 0) {
          padded_.push_back(f);
        }
      }
    }
    return success();
  }

  LogicalResult compareFactor(int f, AxisList axes, const std::string& tensor) {
    if (saidBy_[f].empty()) {
      saidBy_[f] = tensor;
      axes_[f] = std::move(axes);
      return success();
    }
    if (axes_[f] == axes) {
      return success();
    }
    return op_->emitError() << tensor << " of " << op_->getName() << " splits factor '" << rule_.factors()[f].name
                            << "' over " << namesOf(axes, mesh_) << ", " << saidBy_[f] << " over "
                            << namesOf(axes_[f], mesh_) << "; a reshard is missing";
  }

  // The operands that hold partial sums are exactly one linear set.
  bool partialTogether(const SmallVector<unsigned>& partial) {
    return llvm::any_of(op_.getLinearSets(), [&](const auto& set) {
      SmallVector<unsigned> sorted(set.begin(), set.end());
      llvm::sort(sorted);
      return sorted == partial;
    });
  }

  LogicalResult checkPartial() {
    SmallVector<unsigned> partial;
    std::vector<Partial> passed;
    for (unsigned i = 0; i < operands_.size(); ++i) {
      const std::vector<Partial> mine = canonical(operands_[i].partial());
      if (mine.empty()) {
        continue;
      }
      if (!partial.empty() && mine != passed) {
        return op_->emitError() << "operand " << i << " of " << op_->getName() << " is partial over "
                                << partialText(mine, mesh_) << ", operand " << partial[0] << " over "
                                << partialText(passed, mesh_) << "; reduce one of them first";
      }
      passed = mine;
      partial.push_back(i);
    }
    if (!partial.empty() && !partialTogether(partial)) {
      return op_->emitError() << op_->getName() << " reads operand " << partial[0] << " while it is partial over "
                              << partialText(passed, mesh_) << ", but is not linear in it"
                              << (partial.size() > 1 ? " together with the others" : " alone") << "; reduce it first";
    }
    return checkResults(passed);
  }

  LogicalResult checkResults(const std::vector<Partial>& passed) {
    for (unsigned r = 0; r < results_.size(); ++r) {
      std::vector<Partial> expected = rule_.resultLayout(r, axes_, op_.getReduceKind(r)).partial();
      expected.insert(expected.end(), passed.begin(), passed.end());
      expected = canonical(expected);
      if (canonical(results_[r].partial()) != expected) {
        return op_->emitError() << "result " << r << " of " << op_->getName() << " is said to be partial over "
                                << partialText(results_[r].partial(), mesh_) << ", but is partial over "
                                << partialText(expected, mesh_);
      }
    }
    return success();
  }

  ir::OperatorInterface op_;
  const Mesh& mesh_;
  std::vector<Layout> operands_;
  std::vector<Layout> results_;
  Rule rule_;
  FactorAxes axes_;
  std::vector<std::string> saidBy_;
  std::vector<int> padded_;
};

enum class Moves : uint8_t { kMissing, kThere };  // reshards, transfers and masks

class AnnotatedChecker {
 public:
  AnnotatedChecker(ModuleMeshes meshes, Moves moves) : meshes_(std::move(meshes)), moves_(moves) {}

  LogicalResult function(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      if (failed(value(argument))) {
        return failure();
      }
    }
    for (Operation& op : function.getBody().front().without_terminator()) {
      for (Value result : op.getResults()) {
        if (failed(value(result))) {
          return failure();
        }
      }
      if (failed(operation(&op))) {
        return failure();
      }
    }
    return success();
  }

 private:
  LogicalResult value(Value value) {
    if (!ir::dist::hasLayout(value.getType())) {
      return emitError(value.getLoc()) << "every value of the annotated state has a layout, this one is "
                                       << value.getType();
    }
    FailureOr<Layout> layout = ir::dist::layoutOf(value.getType(), meshes_.of(value), value.getLoc());
    if (failed(layout)) {
      return failure();
    }
    if (absl::Status status = layout->check(ir::shapeOf(value), meshes_.of(value)); !status.ok()) {
      return emitError(value.getLoc()) << std::string(status.message());
    }
    if (!ir::isBounded(layout->storedShape(ir::shapeOf(value)))) {
      return emitError(value.getLoc()) << "with the pads of its layout this has more than " << kMaxBytes
                                       << " bytes: " << value.getType();
    }
    layouts_[value] = *std::move(layout);
    return success();
  }

  std::vector<Layout> layoutsOf(ValueRange values) {
    std::vector<Layout> layouts;
    for (Value value : values) {
      layouts.push_back(layouts_[value]);
    }
    return layouts;
  }

  LogicalResult runsAgain(Operation* op, StringRef where) {
    if (where != runsInName(RunsIn::kForward)) {
      return op->emitError() << op->getName() << " has dist.recompute and runs in " << where
                             << "; the backward pass runs forward operators again, no others";
    }
    for (Value value : op->getResults()) {
      if (partialOverTime(layouts_[value])) {
        return op->emitError() << op->getName()
                               << " has dist.recompute, and its result is a sum over the micro-batches, "
                               << "which is whole only after all of them";
      }
    }
    return success();
  }

  LogicalResult operation(Operation* op) {
    auto where = op->getAttrOfType<StringAttr>(kRunsInAttr);
    const bool isFirst = op->getParentOfType<func::FuncOp>().getName() == "init";
    if (!where || (isFirst ? where.getValue() != "init" : !isFunctionName(where.getValue()))) {
      return op->emitError() << op->getName() << " has dist.function '" << (where ? where.getValue() : "")
                             << "'; it should be init, prologue, forward, backward or update, and init in @init alone";
    }
    if (op->hasAttr(kRecomputeAttr) && failed(runsAgain(op, where.getValue()))) {
      return failure();
    }
    if (moves_ == Moves::kMissing) {
      return isStepOperator(op) ? success() : noPlace(op);
    }
    if (isa<ir::dist::TransferOp>(op)) {
      return transfer(op);
    }
    if (failed(sameMesh(op))) {
      return failure();
    }
    if (isa<ir::dist::ReshardOp>(op)) {
      return reshard(op);
    }
    if (isa<ir::dist::MaskPadOp>(op)) {
      return sameLayout(op);
    }
    // A constant is the same on every rank; each takes its part, whatever the rule.
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    if (isa<ir::nn::ConstantOp>(op)) {
      return success();
    }
    if (!interface) {
      return noPlace(op);
    }
    return OperatorChecker(interface, meshes_.of(op), layoutsOf(op->getOperands()), layoutsOf(op->getResults())).run();
  }

  static bool isStepOperator(Operation* op) {
    return isa<ir::OperatorInterface, ir::dist::ReshardOp, ir::dist::TransferOp, ir::dist::MaskPadOp>(op);
  }

  static LogicalResult noPlace(Operation* op) {
    return op->emitError() << op->getName() << " has no place in the annotated state";
  }

  // Only transfers read a value of another mesh.
  LogicalResult sameMesh(Operation* op) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (meshes_.number(operand) != meshes_.number(op)) {
        return op->emitError() << "operand " << i << " of " << op->getName() << " lies on mesh "
                               << meshes_.of(operand).print() << ", the operator on " << meshes_.of(op).print()
                               << "; a dist.transfer is missing";
      }
    }
    return success();
  }

  // A value crosses whole, and in as many micro-batches as it is made in.
  LogicalResult transfer(Operation* op) {
    const Layout& from = layouts_[op->getOperand(0)];
    const Layout& to = layouts_[op->getResult(0)];
    const Mesh& source = meshes_.of(op->getOperand(0));
    bool alike = from.storedShape(ir::shapeOf(op->getOperand(0))) == to.storedShape(ir::shapeOf(op->getResult(0)));
    for (size_t d = 0; d < from.dimensions(); ++d) {
      const auto timed = [](const Axis& axis) { return axis.kind == AxisKind::kTime; };
      alike &= llvm::any_of(from.dim(d), timed) == llvm::any_of(to.dim(d), timed);
    }
    if (from.isPartial() || to.isPartial() || !alike) {
      return op->emitError() << "a transfer cannot go from " << from.print(source) << " on " << source.print() << " to "
                             << to.print(meshes_.of(op)) << " on " << meshes_.of(op).print()
                             << ": no sum may be partial, and micro-batches and pads must be the same";
    }
    return success();
  }

  LogicalResult reshard(Operation* op) {
    const Mesh& mesh = meshes_.of(op);
    const Layout& from = layouts_[op->getOperand(0)];
    for (const Partial& wanted : layouts_[op->getResult(0)].partial()) {
      const bool partial = llvm::any_of(
          from.partial(), [&](const Partial& p) { return p.kind == wanted.kind && overlap(p.axis, wanted.axis); });
      if (!partial) {
        return op->emitError() << "a reshard cannot make " << mesh.name(wanted.axis) << " partial: it goes from "
                               << from.print(mesh) << " to " << layouts_[op->getResult(0)].print(mesh);
      }
    }
    return success();
  }

  LogicalResult sameLayout(Operation* op) {
    const Layout& from = layouts_[op->getOperand(0)];
    const Layout& to = layouts_[op->getResult(0)];
    if (from.canonical() != to.canonical()) {
      const Mesh& mesh = meshes_.of(op);
      return op->emitError() << op->getName() << " reads " << from.print(mesh) << " and leaves " << to.print(mesh)
                             << "; both should be the same";
    }
    return success();
  }

  ModuleMeshes meshes_;
  Moves moves_;
  llvm::DenseMap<Value, Layout> layouts_;
};

LogicalResult checkWithLayouts(ModuleOp module, Moves moves) {
  if (failed(checkModuleAttributes(module))) {
    return failure();
  }
  FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
  if (failed(meshes) || failed(checkForms(module)) || failed(checkStages(module))) {
    return failure();
  }
  if (SmallVector<func::FuncOp> functions = gradientFunctions(module); !functions.empty()) {
    return functions.front().emitError() << "@" << functions.front().getName()
                                         << " is the gradient of an operator; gradients are built in the logical state";
  }
  AnnotatedChecker checker(*std::move(meshes), moves);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (failed(checker.function(function))) {
      return failure();
    }
  }
  return checkNames(module);
}

}  // namespace

LogicalResult checkAnnotated(ModuleOp module) {
  return checkWithLayouts(module, Moves::kThere);
}

LogicalResult checkLaidOut(ModuleOp module) {
  if (failed(checkWithLayouts(module, Moves::kMissing))) {
    return failure();
  }
  const Decisions* decisions = decisionsOf(module);
  if (decisions == nullptr) {
    return module.emitError() << "has no decisions to realize (" << kDecisionsAttr << "); run --weft-decide before";
  }
  return checkDecisions(stepFunction(module), *decisions);
}

}  // namespace weft
