#include "passes/decide/propagate.h"

#include <algorithm>
#include <numeric>

#include "ir/layout/across.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

std::string phaseOf(Operation* op) {
  auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
  return phase ? phase.getValue().str() : "";
}

int64_t elementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// In a compound dimension a factor may be split only if all factors before it are split to single elements.
bool contiguous(const std::vector<std::vector<DimFactors>>& tensors, const Rule& rule, const FactorAxes& axes) {
  for (const auto& dims : tensors) {
    for (const DimFactors& dim : dims) {
      for (size_t k = 1; k < dim.size(); ++k) {
        if (!axes[dim[k]].empty() && partsOf(axes[dim[k - 1]]) != rule.factors()[dim[k - 1]].size) {
          return false;
        }
      }
    }
  }
  return true;
}

bool hasAxes(const FactorAxes& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const auto& list) { return !list.empty(); });
}

}  // namespace

FactorAxes OperatorSharding::closed() const {
  FactorAxes result;
  for (const auto& list : axes) {
    result.push_back(list.value_or(std::vector<Axis>()));
  }
  return result;
}

Propagation::Propagation(func::FuncOp step, const ModuleMeshes& meshes, const ir::OperatorRegistry& registry,
                         const MicroBatchAnalysis& microBatches, const StoredShapes& stored)
    : step_(step),
      meshes_(meshes),
      registry_(registry),
      stored_(stored),
      arguments_(step.getNumArguments()),
      ownerStages_(step.getNumArguments(), 0) {
  for (Operation& op : step.getBody().front().without_terminator()) {
    OperatorSharding& sharding = operators_[&op];
    const std::string text = cast<ir::OperatorInterface>(&op).getRule();
    absl::StatusOr<Rule> rule = Rule::parse(text, stored.operands(&op), stored.results(&op));
    if (rule.ok()) {
      sharding.rule = *std::move(rule);
    }
    sharding.axes.resize(sharding.rule ? sharding.rule->factors().size() : 0);
    sharding.batch = microBatches.operators.find(&op)->second.batch;
    byId_[idOf(&op)] = &op;
  }
  findReaders();
}

// An argument belongs to the stage where its new value is made; without one where it is read first, in the forward pass
// if it is read there.
void Propagation::findReaders() {
  const auto stageOf = [](Operation* op) { return stageOfValue(op->getResult(0)); };
  for (unsigned i = 0; i < step_.getNumArguments(); ++i) {
    std::optional<int64_t> forward;
    std::optional<int64_t> any;
    for (Operation* user : step_.getArgument(i).getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>()) {
        continue;
      }
      arguments_[i][meshes_.number(user)];
      any = std::min(any.value_or(stageOf(user)), stageOf(user));
      if (phaseOf(user).empty()) {
        forward = std::min(forward.value_or(stageOf(user)), stageOf(user));
      }
    }
    ownerStages_[i] = forward.value_or(any.value_or(0));
  }
  for (unsigned r = 0; r < step_.getNumResults(); ++r) {
    auto updated = step_.getResultAttrOfType<IntegerAttr>(r, kUpdatesAttr);
    Operation* made = returned(step_, r).getDefiningOp();
    if (updated && made != nullptr) {
      ownerStages_[updated.getInt()] = stageOf(made);
    }
  }
  for (unsigned i = 0; i < step_.getNumArguments(); ++i) {
    arguments_[i][meshes_.number(ownerStages_[i])];
  }
}

std::vector<int64_t> Propagation::meshesOf(unsigned index) const {
  std::vector<int64_t> numbers;
  for (const auto& [number, sharding] : arguments_[index]) {
    numbers.push_back(number);
  }
  return numbers;
}

std::optional<Layout> Propagation::layoutAt(Value value, Operation* reader) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    std::optional<Layout> layout = arguments_[argument.getArgNumber()][meshes_.number(reader)].layout;
    if (layout) {
      layout->setPartial({});
    }
    return layout;
  }
  const OperatorSharding& producer = operators_[value.getDefiningOp()];
  const unsigned index = cast<OpResult>(value).getResultNumber();
  const auto wanted = producer.wanted.find(index);
  Layout layout =
      wanted != producer.wanted.end() ? wanted->second : producer.rule->resultLayout(index, producer.closed());
  layout.setPartial({});
  return &meshOf(reader) == &meshes_.of(value) ? layout : translated(layout, meshes_.of(value), meshOf(reader));
}

bool Propagation::fits(Operation* op, int factor, const std::vector<Axis>& axes) {
  OperatorSharding& sharding = operators_[op];
  const Rule& rule = *sharding.rule;
  if (!rule.splittable(factor)) {
    if (rule.factors()[factor].whole && registry_.expansion(op) != nullptr &&
        !llvm::is_contained(expansions_, idOf(op))) {
      expansions_.push_back(idOf(op));
    }
    return false;
  }
  FactorAxes all = sharding.closed();
  for (size_t f = 0; f < all.size(); ++f) {
    for (const Axis& other : all[f]) {
      for (const Axis& axis : axes) {
        if (static_cast<int>(f) != factor && !compatible(axis, other)) {
          return false;
        }
      }
    }
  }
  const int64_t microBatches = factor == sharding.batch && !op->hasAttr(kPrologueAttr) ? meshOf(op).microBatches() : 1;
  if (rule.factors()[factor].size % (partsOf(axes) * microBatches) != 0) {
    return false;
  }
  all[factor] = axes;
  return contiguous(rule.operands(), rule, all) && contiguous(rule.results(), rule, all);
}

bool Propagation::assign(Operation* op, int factor, const std::vector<Axis>& axes, const std::string& origin) {
  OperatorSharding& sharding = operators_[op];
  if (axes.empty()) {
    return false;
  }
  if (sharding.axes[factor]) {
    if (*sharding.axes[factor] != axes && phaseOf(op).empty()) {
      const std::string note = labelOf(op) + " factor " + sharding.rule->factors()[factor].name + ": " +
                               Layout({*sharding.axes[factor]}).print(meshOf(op)) + " (" + sharding.origin +
                               ") against " + Layout({axes}).print(meshOf(op)) + " from " + origin;
      if (noted_.insert(note).second) {
        conflicts_.push_back(note);
      }
    }
    return false;
  }
  if (!fits(op, factor, axes)) {
    return false;
  }
  sharding.axes[factor] = axes;
  if (sharding.origin.empty()) {
    sharding.origin = origin;
  }
  return true;
}

bool Propagation::inherit(Operation* op) {
  auto forward = op->getAttrOfType<IntegerAttr>(kForwardAttr);
  const auto it = forward ? byId_.find(forward.getInt()) : byId_.end();
  const bool known = it != byId_.end() && it->second != op && !op->hasAttr(kGradientOfAttr);
  // Axes of another mesh say nothing here.
  if (!known || meshes_.number(op) != meshes_.number(it->second)) {
    return false;
  }
  const OperatorSharding& source = operators_[it->second];
  const Rule& rule = *operators_[op].rule;
  bool changed = false;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const int other = source.rule->factorIndex(rule.factors()[f].name);
    if (other >= 0 && source.axes[other] && source.rule->factors()[other].size == rule.factors()[f].size) {
      changed |= assign(op, static_cast<int>(f), *source.axes[other], "forward operator " + labelOf(it->second));
    }
  }
  return changed;
}

bool Propagation::fromOperands(Operation* op) {
  std::vector<unsigned> order(op->getNumOperands());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
    return elementsOf(stored_.of(op->getOperand(a))) > elementsOf(stored_.of(op->getOperand(b)));
  });
  bool changed = false;
  for (const unsigned i : order) {
    const std::optional<Layout> layout = layoutAt(op->getOperand(i), op);
    if (!layout) {
      continue;
    }
    const FactorAxes axes = operators_[op].rule->projectOperand(i, *layout).axes;
    for (size_t f = 0; f < axes.size(); ++f) {
      changed |= assign(op, static_cast<int>(f), axes[f], "operand " + std::to_string(i));
    }
  }
  return changed;
}

bool Propagation::fromUsers(Operation* op) {
  bool changed = false;
  for (OpResult result : op->getResults()) {
    for (OpOperand& use : result.getUses()) {
      Operation* user = use.getOwner();
      if (user->hasTrait<OpTrait::IsTerminator>() || phaseOf(user) != phaseOf(op)) {
        continue;
      }
      const OperatorSharding& reader = operators_[user];
      const FactorAxes closed = reader.closed();
      if (!hasAxes(closed)) {
        continue;
      }
      Layout layout = reader.rule->operandLayout(use.getOperandNumber(), closed);
      if (meshes_.number(user) != meshes_.number(op)) {
        layout = translated(layout, meshOf(user), meshOf(op));
      }
      const FactorAxes axes = operators_[op].rule->projectResult(result.getResultNumber(), layout).axes;
      for (size_t f = 0; f < axes.size(); ++f) {
        if (!operators_[op].axes[f]) {
          changed |= assign(op, static_cast<int>(f), axes[f], "reader " + labelOf(user));
        }
      }
    }
  }
  return changed;
}

bool Propagation::sweep(const std::string& phase) {
  Block& body = step_.getBody().front();
  bool changed = false;
  for (Operation& op : body.without_terminator()) {
    if (phaseOf(&op) == phase) {
      changed |= inherit(&op);
      changed |= fromOperands(&op);
    }
  }
  for (Operation& op : llvm::reverse(body.without_terminator())) {
    if (phaseOf(&op) == phase) {
      changed |= fromUsers(&op);
    }
  }
  return changed;
}

void Propagation::run() {
  while (sweep("")) {
  }
  while (sweep("backward")) {
  }
}

void Propagation::runUpdate() {
  while (sweep("update")) {
  }
}

void Propagation::seedInputs(llvm::function_ref<std::vector<Axis>(const Mesh&)> dataAxes) {
  for (const Argument& argument : argumentsOf(step_)) {
    for (auto& [number, sharding] : arguments_[argument.index]) {
      if (argument.kind == "input" && !sharding.layout) {
        seedInput(argument.index, number, dataAxes(meshes_.withNumber(number)));
      }
    }
  }
}

void Propagation::seedInput(unsigned index, int64_t mesh, const std::vector<Axis>& dataAxes) {
  Value value = step_.getArgument(index);
  ArgumentSharding& sharding = arguments_[index][mesh];
  for (OpOperand& use : value.getUses()) {
    if (use.getOwner()->hasTrait<OpTrait::IsTerminator>() || meshes_.number(use.getOwner()) != mesh) {
      continue;
    }
    const OperatorSharding& reader = operators_[use.getOwner()];
    if (hasAxes(reader.closed())) {
      sharding.layout = reader.rule->operandLayout(use.getOperandNumber(), reader.closed());
      sharding.origin = "reader " + labelOf(use.getOwner());
    }
  }
  if (sharding.layout || dataAxes.empty()) {
    return;
  }
  auto attr = step_.getArgAttrOfType<IntegerAttr>(index, kBatchDimAttr);
  const int64_t dim = attr ? attr.getInt() : 0;
  const Shape& shape = stored_.of(value);
  const int64_t microBatches = meshes_.withNumber(mesh).microBatches();
  if (dim >= 0 && dim < static_cast<int64_t>(shape.size()) && shape[dim] % (partsOf(dataAxes) * microBatches) == 0) {
    Layout layout(shape.size());
    layout.setDim(dim, dataAxes);
    sharding.layout = layout;
    sharding.origin = "default: batch over the data-parallel axes";
  }
}

void Propagation::closeOperators() {
  for (Operation& op : step_.getBody().front().without_terminator()) {
    OperatorSharding& sharding = operators_[&op];
    for (auto& axes : sharding.axes) {
      axes = axes.value_or(std::vector<Axis>());
    }
    if (sharding.origin.empty()) {
      sharding.origin = "default: replicated";
    }
  }
}

void Propagation::closeArguments() {
  // Readers in program order: uses of a value come in no fixed order.
  for (Operation& op : step_.getBody().front().without_terminator()) {
    for (unsigned i = 0; i < op.getNumOperands() && phaseOf(&op) != "update"; ++i) {
      auto argument = dyn_cast<BlockArgument>(op.getOperand(i));
      if (!argument) {
        continue;
      }
      ArgumentSharding& sharding = arguments_[argument.getArgNumber()][meshes_.number(&op)];
      if (!sharding.layout) {
        sharding = {operators_[&op].rule->operandLayout(i, operators_[&op].closed()), "first reader " + labelOf(&op)};
      }
    }
  }
  for (unsigned i = 0; i < step_.getNumArguments(); ++i) {
    for (auto& [number, sharding] : arguments_[i]) {
      if (!sharding.layout) {
        sharding = {Layout(stored_.of(step_.getArgument(i)).size()), "default: replicated"};
      }
    }
  }
}

void Propagation::fix(Operation* op, const Layout& layout, const std::string& origin) {
  OperatorSharding& sharding = operators_[op];
  const FactorAxes axes = sharding.rule->projectResult(0, layout).axes;
  for (size_t f = 0; f < axes.size(); ++f) {
    sharding.axes[f] = axes[f];
  }
  sharding.origin = origin;
}

}  // namespace weft
