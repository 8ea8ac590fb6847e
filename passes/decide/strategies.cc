// The user's words: shard strategies, constraints and argument layouts, checked and turned into axes of factors.

#include <numeric>

#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "passes/decide/propagate.h"
#include "planner/decisions.h"
#include "runtime/base/names.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

std::vector<Shape> readSplitLists(Attribute attr) {
  std::vector<Shape> lists;
  if (auto outer = dyn_cast_or_null<ArrayAttr>(attr)) {
    for (Attribute inner : outer) {
      Shape list;
      if (auto dense = dyn_cast<DenseI64ArrayAttr>(inner)) {
        list.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
      } else if (auto array = dyn_cast<ArrayAttr>(inner)) {
        for (Attribute value : array) {
          list.push_back(cast<IntegerAttr>(value).getInt());
        }
      }
      lists.push_back(std::move(list));
    }
  }
  return lists;
}

// Axis names per dimension as a layout text: ["dp,tp", ""] -> "[{dp,tp},{}]".
std::string layoutText(ArrayAttr names) {
  std::string text = "[";
  for (Attribute name : names) {
    text += (text.size() > 1 ? ",{" : "{") + cast<StringAttr>(name).getValue().str() + "}";
  }
  return text + "]";
}

bool writtenWithNames(DictionaryAttr strategy) {
  for (StringRef key : {"in", "out"}) {
    auto outer = dyn_cast_or_null<ArrayAttr>(strategy.get(key));
    for (Attribute inner : outer ? outer.getValue() : ArrayRef<Attribute>()) {
      auto array = dyn_cast<ArrayAttr>(inner);
      if (array && !array.empty() && isa<StringAttr>(array[0])) {
        return true;
      }
    }
  }
  return false;
}

// The line of the `shard` call, which follows that of the operator.
Location strategyLocation(Operation* op) {
  auto both = dyn_cast<FusedLoc>(op->getLoc());
  return both ? both.getLocations().back() : op->getLoc();
}

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

LogicalResult Propagation::readUser(const UserLayouts& layouts) {
  if (failed(readArguments(layouts))) {
    return failure();
  }
  for (Operation& op : step_.getBody().front().without_terminator()) {
    if (!operators_[&op].rule) {
      return op.emitError() << labelOf(&op) << " has no rule over its stored shapes";
    }
    if (op.hasAttr(kStrategyAttr) && failed(readStrategy(&op))) {
      return failure();
    }
    if (isa<ir::nn::ConstrainOp>(op) && failed(readConstraint(&op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult Propagation::readStrategy(Operation* op) {
  auto strategy = op->getAttrOfType<DictionaryAttr>(kStrategyAttr);
  if (!strategy) {
    return emitError(strategyLocation(op),
                     "attribute nn.strategy should be a dictionary with 'in' and optionally 'out'");
  }
  operators_[op].origin = "user";
  return writtenWithNames(strategy) ? readNames(op, strategy) : readSplits(op, strategy);
}

LogicalResult Propagation::readSplits(Operation* op, DictionaryAttr strategy) {
  OperatorSharding& sharding = operators_[op];
  const std::vector<Shape> out = readSplitLists(strategy.get("out"));
  absl::StatusOr<SplitStrategy> split =
      resolveSplits(*sharding.rule, readSplitLists(strategy.get("in")), out, meshOf(op));
  if (!split.ok()) {
    return emitError(strategyLocation(op)) << labelOf(op) << ": " << std::string(split.status().message());
  }
  for (size_t f = 0; f < split->axes.size(); ++f) {
    sharding.axes[f] = split->axes[f];
  }
  for (size_t r = 0; !out.empty() && r < split->results.size(); ++r) {
    sharding.wanted[static_cast<unsigned>(r)] = split->results[r];
  }
  return success();
}

LogicalResult Propagation::readNames(Operation* op, DictionaryAttr strategy) {
  OperatorSharding& sharding = operators_[op];
  auto in = strategy.getAs<ArrayAttr>("in");
  if (!in || in.size() != op->getNumOperands()) {
    return emitError(strategyLocation(op))
           << labelOf(op) << ": the strategy has " << (in ? in.size() : 0) << " operands, the operator "
           << op->getNumOperands() << "; give one list of axis names per operand";
  }
  std::vector<Layout> layouts;
  for (unsigned i = 0; i < in.size(); ++i) {
    FailureOr<Layout> layout =
        parseLayout(layoutText(cast<ArrayAttr>(in[i])), op->getOperand(i), meshOf(op), strategyLocation(op));
    if (failed(layout)) {
      return failure();
    }
    layouts.push_back(*std::move(layout));
  }
  absl::StatusOr<NamedStrategy> named = resolveNames(*sharding.rule, layouts, meshOf(op));
  if (!named.ok()) {
    return emitError(strategyLocation(op)) << labelOf(op) << ": " << std::string(named.status().message());
  }
  const FactorAxes& axes = named->axes;
  for (size_t f = 0; f < axes.size(); ++f) {
    const Factor& factor = sharding.rule->factors()[f];
    if (!axes[f].empty() && factor.whole && registry_.expansion(op) != nullptr) {
      expansions_.push_back(idOf(op));
      return success();
    }
  }
  if (absl::Status status = sharding.rule->check(axes, meshOf(op)); !status.ok()) {
    return emitError(strategyLocation(op)) << labelOf(op) << ": " << std::string(status.message());
  }
  for (size_t f = 0; f < axes.size(); ++f) {
    // Factors that only results have stay open to propagation.
    if (named->said[f]) {
      sharding.axes[f] = axes[f];
    }
  }
  auto out = strategy.getAs<ArrayAttr>("out");
  for (unsigned r = 0; out && r < out.size(); ++r) {
    if (r >= op->getNumResults()) {
      return emitError(strategyLocation(op))
             << labelOf(op) << ": the strategy has " << out.size() << " results, the operator " << op->getNumResults();
    }
    FailureOr<Layout> layout =
        parseLayout(layoutText(cast<ArrayAttr>(out[r])), op->getResult(r), meshOf(op), strategyLocation(op));
    if (failed(layout)) {
      return failure();
    }
    sharding.wanted[r] = *layout;
  }
  return success();
}

LogicalResult Propagation::readConstraint(Operation* op) {
  auto text = op->getAttrOfType<StringAttr>("layout");
  if (!text || text.getValue().empty()) {
    return success();
  }
  FailureOr<Layout> layout = parseLayout(text.getValue().str(), op->getResult(0), meshOf(op), op->getLoc());
  if (failed(layout)) {
    return failure();
  }
  fix(op, *layout, "user");
  return success();
}

FailureOr<Layout> Propagation::parseLayout(const std::string& text, Value value, const Mesh& mesh, Location loc) {
  absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
  absl::Status status = layout.status();
  if (layout.ok()) {
    // The stored shape stands in for the tensor's; a pad was taken into it before.
    Layout plain = *layout;
    for (size_t d = 0; d < plain.dimensions(); ++d) {
      plain.setPad(d, 0);
    }
    *layout = plain;
    status = plain.check(stored_.of(value), mesh);
    if (status.ok() && plain.isPartial()) {
      status =
          absl::InvalidArgumentError("layout " + text + " is partial; a value cannot be asked to be a partial sum");
    }
  }
  if (!status.ok()) {
    return emitError(loc) << std::string(status.message()), failure();
  }
  return *layout;
}

// Entry `mesh` of a list of layouts "[{dp}];[{}]"; a list of one serves all meshes.
static std::string layoutOfSubmesh(StringRef text, int64_t mesh) {
  SmallVector<StringRef> layouts;
  text.split(layouts, ';');
  return (mesh < static_cast<int64_t>(layouts.size()) ? layouts[mesh] : layouts[0]).str();
}

UserLayouts::UserLayouts(func::FuncOp step, const std::vector<std::pair<std::string, std::string>>& patterns) {
  for (const Argument& argument : argumentsOf(step)) {
    auto own = step.getArgAttrOfType<StringAttr>(argument.index, kLayoutAttr);
    const auto matches = [&](const auto& entry) { return globMatches(entry.first, argument.name); };
    const auto pattern = argument.kind == "parameter" ? llvm::find_if(patterns, matches) : patterns.end();
    texts_.push_back(own ? own.str() : pattern == patterns.end() ? "" : pattern->second);
  }
}

std::string UserLayouts::of(unsigned index, int64_t mesh) const {
  return layoutOfSubmesh(texts_[index], mesh);
}

LogicalResult Propagation::readArguments(const UserLayouts& layouts) {
  for (unsigned i = 0; i < step_.getNumArguments(); ++i) {
    for (auto& [number, sharding] : arguments_[i]) {
      const std::string text = layouts.of(i, number);
      if (text.empty()) {
        continue;
      }
      Value argument = step_.getArgument(i);
      FailureOr<Layout> layout = parseLayout(text, argument, meshes_.withNumber(number), argument.getLoc());
      if (failed(layout)) {
        return failure();
      }
      sharding = {*layout, "user"};
    }
  }
  return success();
}

// The numbers of the meshes that read an argument; with one mesh for all submeshes that is it.
static std::set<int64_t> readersOf(func::FuncOp step, unsigned index, const ModuleMeshes& meshes) {
  std::set<int64_t> numbers;
  for (Operation* user : step.getArgument(index).getUsers()) {
    if (meshes.same() || !user->hasTrait<OpTrait::IsTerminator>()) {
      numbers.insert(meshes.number(user));
    }
  }
  return numbers;
}

// The stored shape that the user's layout of a parameter asks for.
static FailureOr<Shape> storedAs(func::FuncOp step, const Argument& argument, const ModuleMeshes& meshes,
                                 const UserLayouts& layouts) {
  Value value = step.getArgument(argument.index);
  Shape stored = ir::shapeOf(value);
  std::set<int64_t> numbers = readersOf(step, argument.index, meshes);
  if (numbers.empty()) {
    numbers.insert(0);
  }
  for (const int64_t number : numbers) {
    const std::string text = layouts.of(argument.index, number);
    if (text.empty()) {
      continue;
    }
    absl::StatusOr<Layout> layout = Layout::parse(text, meshes.withNumber(number));
    if (!layout.ok() || layout->dimensions() != stored.size()) {
      return emitError(value.getLoc()) << "parameter '" << argument.name << "': "
                                       << (layout.ok()
                                               ? "layout " + text + " has " + std::to_string(layout->dimensions()) +
                                                     " dimensions, the parameter " + std::to_string(stored.size())
                                               : std::string(layout.status().message())),
             failure();
    }
    const Shape padded = layout->storedShape(ir::shapeOf(value));
    for (size_t d = 0; d < stored.size(); ++d) {
      stored[d] = std::max(stored[d], padded[d]);
    }
  }
  return stored;
}

FailureOr<llvm::DenseMap<unsigned, Shape>> paddedArguments(func::FuncOp step, const ModuleMeshes& meshes, int64_t rows,
                                                           const UserLayouts& layouts) {
  llvm::DenseMap<unsigned, Shape> stored;
  for (const Argument& argument : argumentsOf(step)) {
    Value value = step.getArgument(argument.index);
    FailureOr<Shape> shape = ir::shapeOf(value);
    if (argument.kind == "input") {
      auto attr = step.getArgAttrOfType<IntegerAttr>(argument.index, kBatchDimAttr);
      const int64_t dim = attr ? attr.getInt() : 0;
      if (dim >= 0 && dim < static_cast<int64_t>(shape->size()) && (*shape)[dim] > 1) {
        (*shape)[dim] = roundUp((*shape)[dim], rows);
      }
    } else {
      shape = storedAs(step, argument, meshes, layouts);
      if (failed(shape)) {
        return failure();
      }
    }
    if (*shape != ir::shapeOf(value)) {
      stored[argument.index] = *shape;
    }
  }
  return stored;
}

llvm::MapVector<unsigned, Shape> zeroPads(func::FuncOp step, int64_t shards, const UserLayouts& layouts) {
  llvm::MapVector<unsigned, Shape> pads;
  for (const Argument& argument : argumentsOf(step)) {
    Shape shape = ir::shapeOf(step.getArgument(argument.index));
    const bool divides = llvm::any_of(shape, [&](int64_t size) { return size % shards == 0; });
    const auto largest = std::max_element(shape.begin(), shape.end());
    const bool large = largest != shape.end() && *largest > shards * kSmallestZeroShard;
    if (argument.kind == "parameter" && large && !divides && layouts.of(argument.index, 0).empty()) {
      *largest = roundUp(*largest, shards);
      pads[argument.index] = shape;
    }
  }
  return pads;
}

}  // namespace weft
