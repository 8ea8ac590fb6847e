#include "passes/gates/check_numbers.h"

#include <map>
#include <set>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "runtime/base/dtype.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

class NumbersChecker {
 public:
  NumbersChecker(ModuleOp module, Mesh mesh) : module_(module), mesh_(std::move(mesh)) {}

  LogicalResult run() {
    if (failed(table())) {
      return failure();
    }
    for (func::FuncOp function : functionsInOrder(module_)) {
      if (failed(visit(function))) {
        return failure();
      }
    }
    auto tensors = module_->getAttrOfType<ArrayAttr>(kTensorsAttr);
    for (Attribute entry : tensors ? tensors.getValue() : ArrayRef<Attribute>()) {
      if (failed(tensor(dyn_cast<DictionaryAttr>(entry)))) {
        return failure();
      }
    }
    return success();
  }

 private:
  struct Named {
    Type type;
    ir::dist::Memory memory;
  };

  LogicalResult table() {
    auto table = module_->getAttrOfType<DenseIntElementsAttr>(kRankTableAttr);
    if (!table) {
      return success();
    }
    if (table.getType().getRank() != 2 || table.getType().getDimSize(0) != mesh_.ranks() ||
        !table.getElementType().isInteger(64)) {
      return module_.emitError() << "dist.rank_table is " << table.getType() << "; mesh " << mesh_.print()
                                 << " asks for " << mesh_.ranks() << " rows of i64";
    }
    columns_ = table.getType().getDimSize(1);
    return success();
  }

  LogicalResult visit(func::FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (failed(named(function.getArgument(i), function.getArgAttrDict(i))) ||
          failed(hasSource(function.getArgument(i), function))) {
        return failure();
      }
    }
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (failed(collective(&op)) || failed(scalars(&op))) {
        return failure();
      }
    }
    std::set<StringRef> returnedNames;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      const StringRef name = nameOf(function.getResultAttrDict(i));
      if (failed(named(returned(function, i), function.getResultAttrDict(i)))) {
        return failure();
      }
      if (!returnedNames.insert(name).second) {
        return function.emitError() << "@" << function.getName() << " returns '" << name << "' twice";
      }
    }
    return success();
  }

  static StringRef nameOf(DictionaryAttr attrs) { return attrs.getAs<StringAttr>(kValueAttr).getValue(); }

  // One type and memory for each name.
  LogicalResult named(Value value, DictionaryAttr attrs) {
    const ir::dist::Memory memory = *memoryOf(attrs);
    const auto [it, added] = names_.try_emplace(nameOf(attrs).str(), Named{value.getType(), memory});
    if (!added && (it->second.type != value.getType() || it->second.memory != memory)) {
      return emitError(value.getLoc()) << "'" << it->first << "' is " << value.getType() << " in memory '"
                                       << stringifyMemory(memory) << "' here, and " << it->second.type << " in memory '"
                                       << stringifyMemory(it->second.memory) << "' in a function before";
    }
    return success();
  }

  // An activation or accumulator that a function reads is written by it, or by one before.
  LogicalResult hasSource(BlockArgument argument, func::FuncOp function) {
    const DictionaryAttr attrs = function.getArgAttrDict(argument.getArgNumber());
    const StringRef name = nameOf(attrs);
    const ir::dist::Memory memory = names_.at(name.str()).memory;
    if (memory != ir::dist::Memory::kActivation && memory != ir::dist::Memory::kAccumulator) {
      return success();
    }
    for (func::FuncOp writer : functionsInOrder(module_)) {
      for (unsigned i = 0; kindOf(writer) != "init" && i < writer.getNumResults(); ++i) {
        if (nameOf(writer.getResultAttrDict(i)) == name) {
          return success();
        }
      }
      if (writer == function) {
        break;
      }
    }
    return emitError(argument.getLoc()) << "@" << function.getName() << " reads " << stringifyMemory(memory) << " '"
                                        << name << "', but neither it nor a function before returns it";
  }

  LogicalResult collective(Operation* op) {
    if (auto permute = dyn_cast<ir::dist::PermuteOp>(op)) {
      return success(succeeded(ir::dist::sourcesOf(permute, mesh_)));
    }
    const ir::dist::AxesAttr over = ir::dist::overOf(op);
    if (!over) {
      return success();
    }
    const FailureOr<AxisList> axes = ir::dist::axesOver(op, mesh_);
    if (failed(axes)) {
      return failure();
    }
    const std::optional<int64_t> members = ir::dist::membersByShape(op);
    if (members && *members != partsOf(*axes)) {
      return op->emitError() << "groups over " << over.getText() << " of mesh " << mesh_.print() << " have "
                             << partsOf(*axes) << " members, the shapes ask for " << *members;
    }
    return success();
  }

  static size_t scalarsWanted(Operation* op) {
    if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
      return interface.getOriginRequests().size();
    }
    if (auto slice = dyn_cast<ir::dist::DynamicSliceOp>(op)) {
      return cast<RankedTensorType>(slice.getX().getType()).getRank();
    }
    if (auto update = dyn_cast<ir::dist::DynamicUpdateSliceOp>(op)) {
      return cast<RankedTensorType>(update.getWhole().getType()).getRank();
    }
    if (auto mask = dyn_cast<ir::dist::MaskPadOp>(op)) {
      return mask.getDims().size();
    }
    return isa<ir::dist::AccumulateOp, ir::dist::ContractAccumulateOp>(op) ? 1 : 0;
  }

  LogicalResult scalars(Operation* op) {
    auto scalars = op->getAttrOfType<ArrayAttr>(kScalarsAttr);
    const size_t count = scalars ? scalars.size() : 0;
    if (count != scalarsWanted(op)) {
      return op->emitError() << op->getName() << " has " << count << " scalars (dist.scalars); its kernel takes "
                             << scalarsWanted(op);
    }
    for (Attribute entry : scalars ? scalars.getValue() : ArrayRef<Attribute>()) {
      auto scalar = dyn_cast<ir::dist::ScalarAttr>(entry);
      if (!scalar || scalar.getColumn() >= columns_) {
        return op->emitError() << "scalar " << entry << " reads a column the rank table does not have; it has "
                               << columns_;
      }
    }
    return success();
  }

  // Every key of the form that the emitter reads.
  LogicalResult tensor(DictionaryAttr entry) {
    auto error = [&] { return module_.emitError() << "dist.tensors: " << entry << ": "; };
    if (!entry) {
      return module_.emitError("dist.tensors holds something that is no dictionary");
    }
    for (const char* key : {"name", "kind", "value", "type"}) {
      if (!entry.getAs<StringAttr>(key)) {
        return error() << "'" << key << "' should be a text";
      }
    }
    const StringRef kind = entry.getAs<StringAttr>("kind").getValue();
    if (kind != "input" && kind != "parameter" && kind != "state" && kind != "output") {
      return error() << "kind '" << kind << "' should be input, parameter, state or output";
    }
    if (!parseDType(entry.getAs<StringAttr>("type").getValue().str())) {
      return error() << "unknown type '" << entry.getAs<StringAttr>("type").getValue() << "'";
    }
    if (!entry.getAs<DenseI64ArrayAttr>("shape") || !entry.getAs<DenseI64ArrayAttr>("file_shape")) {
      return error() << "'shape' and 'file_shape' should be arrays of i64";
    }
    return slices(entry);
  }

  LogicalResult slices(DictionaryAttr entry) {
    const int64_t dims = entry.getAs<DenseI64ArrayAttr>("shape").size();
    for (const char* key : {"offsets", "valid"}) {
      auto perRank = entry.getAs<ArrayAttr>(key);
      const bool fits =
          perRank && static_cast<int64_t>(perRank.size()) == mesh_.ranks() && llvm::all_of(perRank, [&](Attribute one) {
            auto numbers = dyn_cast<DenseI64ArrayAttr>(one);
            return numbers && numbers.size() == dims;
          });
      if (!fits) {
        return module_.emitError() << "dist.tensors: '" << entry.getAs<StringAttr>("name").getValue() << "' needs in '"
                                   << key << "' " << dims << " numbers for each of " << mesh_.ranks() << " ranks";
      }
    }
    return success();
  }

  ModuleOp module_;
  Mesh mesh_;
  int64_t columns_ = 0;
  std::map<std::string, Named> names_;
};

}  // namespace

LogicalResult checkNumbers(ModuleOp module) {
  for (ModuleOp submesh : submeshesOf(module)) {
    FailureOr<Mesh> mesh = meshOf(submesh);
    if (failed(mesh) || failed(NumbersChecker(submesh, *mesh).run())) {
      return failure();
    }
  }
  return success();
}

}  // namespace weft
