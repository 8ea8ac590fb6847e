#include "ir/program/program.h"

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "mlir/IR/Builders.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR types throughout

func::FuncOp stepFunction(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>("step");
}

func::FuncOp initFunction(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>("init");
}

SmallVector<func::FuncOp> gradientFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  llvm::erase_if(functions, [&](func::FuncOp function) {
    return function == stepFunction(module) || function == initFunction(module);
  });
  return functions;
}

void dropGradientFunctions(ModuleOp module) {
  module.walk([](ir::nn::CustomOp op) {
    op.removeGradientAttr();
    op.removeGradientOfAttr();
  });
  for (func::FuncOp function : gradientFunctions(module)) {
    function.erase();
  }
}

llvm::SmallVector<ModuleOp> submeshesOf(ModuleOp module) {
  llvm::SmallVector<ModuleOp> submeshes(module.getOps<ModuleOp>());
  if (submeshes.empty()) {
    submeshes.push_back(module);
  }
  return submeshes;
}

int orderOf(StringRef kind) {
  constexpr StringRef kOrder[] = {"init", "prologue", "forward", "backward", "input_grad", "weight_grad", "update"};
  const auto* const it = llvm::find(kOrder, kind);
  return it == std::end(kOrder) ? -1 : static_cast<int>(it - std::begin(kOrder));
}

namespace {

int64_t stageOfFunction(func::FuncOp function) {
  auto stage = function->getAttrOfType<IntegerAttr>(kStageAttr);
  return stage ? stage.getInt() : 0;
}

}  // namespace

llvm::SmallVector<func::FuncOp> functionsInOrder(ModuleOp submesh) {
  llvm::SmallVector<func::FuncOp> functions;
  for (auto function : submesh.getOps<func::FuncOp>()) {
    if (orderOf(kindOf(function)) >= 0) {
      functions.push_back(function);
    }
  }
  llvm::stable_sort(functions, [](func::FuncOp a, func::FuncOp b) {
    const int first = orderOf(kindOf(a));
    const int second = orderOf(kindOf(b));
    if (first != second) {
      return first < second;
    }
    return kindOf(a) == "forward" ? stageOfFunction(a) < stageOfFunction(b) : stageOfFunction(a) > stageOfFunction(b);
  });
  return functions;
}

StringRef kindOf(func::FuncOp function) {
  auto kind = function->getAttrOfType<StringAttr>(kFunctionKindAttr);
  return kind ? kind.getValue() : "";
}

bool isPerMicroBatch(StringRef kind) {
  return kind == "forward" || kind == "backward" || kind == "input_grad" || kind == "weight_grad";
}

bool trains(ModuleOp module) {
  const WalkResult walked = module.walk([](Operation* op) {
    auto function = dyn_cast<func::FuncOp>(op);
    // Where an operator runs; before that is decided, the phase that autodiff gave it.
    auto where = op->getAttrOfType<StringAttr>(op->hasAttr(kRunsInAttr) ? kRunsInAttr : kPhaseAttr);
    const StringRef kind = function ? kindOf(function) : where ? where.getValue() : "";
    return isPerMicroBatch(kind) && kind != "forward" ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walked.wasInterrupted();
}

std::string functionName(StringRef kind, int64_t stage, bool alone) {
  return alone || !isPerMicroBatch(kind) ? kind.str() : kind.str() + "." + std::to_string(stage);
}

FailureOr<Mesh> meshOf(ModuleOp module) {
  auto attr = module->getAttrOfType<ir::dist::MeshAttr>(kMeshAttr);
  if (!attr) {
    module.emitError("the module has no attribute dist.mesh; give a mesh such as dp=2,tp=2");
    return failure();
  }
  absl::StatusOr<Mesh> mesh = Mesh::parse(attr.getText().str());
  if (!mesh.ok()) {
    module.emitError(std::string(mesh.status().message()));
    return failure();
  }
  return *mesh;
}

static std::string text(Attribute attr) {
  auto value = dyn_cast_or_null<StringAttr>(attr);
  return value ? value.getValue().str() : "";
}

Argument argumentAt(func::FuncOp function, unsigned index) {
  return {index, text(function.getArgAttr(index, kKindAttr)), text(function.getArgAttr(index, kNameAttr))};
}

std::vector<Argument> argumentsOf(func::FuncOp function) {
  std::vector<Argument> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    arguments.push_back(argumentAt(function, i));
  }
  return arguments;
}

std::optional<ir::dist::Memory> memoryOf(DictionaryAttr attrs) {
  auto memory = attrs ? attrs.getAs<ir::dist::MemoryAttr>(kMemoryAttr) : ir::dist::MemoryAttr();
  return memory ? std::optional(memory.getValue()) : std::nullopt;
}

void setMemory(NamedAttrList& attrs, ir::dist::Memory memory, MLIRContext* context) {
  attrs.set(kMemoryAttr, ir::dist::MemoryAttr::get(context, memory));
}

std::string resultText(func::FuncOp function, unsigned index, StringRef attr) {
  return text(function.getResultAttr(index, attr));
}

constexpr char kGradientPrefix[] = "grad.";

std::string gradientName(StringRef parameter) {
  return kGradientPrefix + parameter.str();
}

std::string parameterOfGradient(StringRef gradient) {
  return gradient.consume_front(kGradientPrefix) ? gradient.str() : "";
}

Value returned(func::FuncOp function, unsigned index) {
  return function.getBody().front().getTerminator()->getOperand(index);
}

void refreshType(func::FuncOp function) {
  Block& body = function.getBody().front();
  function.setType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
}

BlockArgument addArgument(func::FuncOp function, Type type, NamedAttrList attrs, Location loc) {
  BlockArgument argument = function.getBody().front().addArgument(type, loc);
  refreshType(function);
  function.setArgAttrs(argument.getArgNumber(), attrs);
  return argument;
}

void addResult(func::FuncOp function, Value value, NamedAttrList attrs) {
  Operation* terminator = function.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
  refreshType(function);
  function.setResultAttrs(terminator->getNumOperands() - 1, attrs.getDictionary(function.getContext()));
}

int64_t idOf(Operation* op) {
  auto attr = op->getAttrOfType<IntegerAttr>(kIdAttr);
  return attr ? attr.getInt() : -1;
}

void assignIds(ModuleOp module) {
  int64_t next = 0;
  module.walk([&](Operation* op) { next = std::max(next, idOf(op) + 1); });
  Builder builder(module.getContext());
  for (auto function : module.getOps<func::FuncOp>()) {
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (idOf(&op) < 0) {
        op.setAttr(kIdAttr, builder.getI64IntegerAttr(next++));
      }
    }
  }
}

std::string labelOf(Operation* op) {
  std::string name = text(op->getAttr(kNameAttr));
  return name.empty() ? ir::kindOf(op) : name;
}

void copyMarks(Operation* like, Operation* op) {
  for (const char* attr : {kPhaseAttr, kForwardAttr, kNameAttr, kUserStageAttr, kUserRecomputeAttr}) {
    if (like->hasAttr(attr) && !op->hasAttr(attr)) {
      op->setAttr(attr, like->getAttr(attr));
    }
  }
  op->setLoc(like->getLoc());
}

int64_t stageOf(Operation* op) {
  auto stage = op->getAttrOfType<IntegerAttr>(kStageAttr);
  return stage ? stage.getInt() : 0;
}

void setReads(Operation* op, ArrayRef<Layout> layouts, const Mesh& mesh) {
  if (layouts.empty()) {
    return;
  }
  SmallVector<Attribute> texts;
  for (const Layout& layout : layouts) {
    texts.push_back(ir::dist::LayoutAttr::get(op->getContext(), layout.canonical().print(mesh)));
  }
  op->setAttr(kReadsAttr, ArrayAttr::get(op->getContext(), texts));
}

ArrayAttr readsOf(Operation* op) {
  if (op->getNumOperands() == 0) {
    return ArrayAttr::get(op->getContext(), {});
  }
  auto texts = op->getAttrOfType<ArrayAttr>(kReadsAttr);
  const bool fits = texts && llvm::all_of(texts, [](Attribute text) { return isa<ir::dist::LayoutAttr>(text); });
  return fits ? texts : ArrayAttr();
}

void removeReads(Operation* op) {
  op->removeAttr(kReadsAttr);
}

}  // namespace weft
