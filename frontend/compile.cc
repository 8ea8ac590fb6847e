#include "weft/compile.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "frontend/call.h"
#include "frontend/graph_impl.h"
#include "ir/layout/stage_mesh_text.h"
#include "ir/program/program.h"
#include "ir/registry.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "passes/compile.h"
#include "passes/logical/request_attributes.h"
#include "planner/check_request.h"
#include "planner/decisions.h"
#include "planner/open_mesh.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

using mlir::NamedAttrList;

namespace {

// An error at the line that made the tensor.
absl::Status errorOf(const Tensor& tensor, const std::string& text) {
  const auto place = tensor.graph()->value(tensor).getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  return absl::InvalidArgumentError(
      place ? absl::StrCat(place.getFilename().str(), ":", place.getLine(), ": error: ", text) : text);
}

// The loss leaves the program as "loss".
absl::Status checkNameOfLoss(GraphImpl& graph, const Tensor& loss) {
  if (loss.graph() != &graph) {
    return errorOf(loss, "compile: the loss belongs to another graph than the one that is compiled");
  }
  if (const Tensor known = graph.findArgument("loss"); known.valid()) {
    return errorOf(known, "compile: the loss leaves the program as 'loss'; give the tensor of that name another");
  }
  for (const auto& [name, value] : graph.outputs) {
    if (name == "loss" && graph.value(value) != graph.value(loss)) {
      return errorOf(value, "compile: output 'loss' is not the loss, which has that name; give it another");
    }
  }
  return absl::OkStatus();
}

// Entries of CompileOptions::layouts that name a state, which parameterLayouts() wrote, become the state's own layout:
// patterns are of parameters alone.
void layOutStates(mlir::func::FuncOp step, CompileOptions& options) {
  for (const Argument& argument : argumentsOf(step)) {
    const auto entry = std::find_if(options.layouts.begin(), options.layouts.end(),
                                    [&](const auto& layout) { return layout.first == argument.name; });
    if (argument.kind == "state" && entry != options.layouts.end()) {
      mlir::Builder builder(step.getContext());
      step.setArgAttr(argument.index, kLayoutAttr, builder.getStringAttr(entry->second));
      options.layouts.erase(entry);
    }
  }
}

// A copy of the graph's module, so that one graph can be compiled several times. A forward program changes only the
// state that says so.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> moduleFor(Graph& graph, const Tensor& loss, const Request& request) {
  GraphImpl& impl = *graph.impl();
  WEFT_RETURN_IF_ERROR(impl.status);
  WEFT_RETURN_IF_ERROR(checkRequest(request));
  mlir::func::FuncOp step = impl.step;
  mlir::Operation* terminator = step.getBody().front().getTerminator();
  terminator->setOperands({});
  refreshType(step);
  const auto add = [&](const Tensor& value, const char* kind, const std::string& name) {
    NamedAttrList attrs;
    attrs.set(kKindAttr, impl.builder.getStringAttr(kind));
    attrs.set(kNameAttr, impl.builder.getStringAttr(name));
    addResult(step, impl.value(value), attrs);
  };
  if (loss.valid()) {
    WEFT_RETURN_IF_ERROR(checkNameOfLoss(impl, loss));
    add(loss, "loss", "loss");
  }
  for (const auto& [name, value] : impl.outputs) {
    if (!loss.valid() || name != "loss") {
      add(value, "output", name);
    }
  }
  for (const GraphImpl::Assignment& assigned : impl.assignments) {
    if (request.optimizer || assigned.options.alsoForward) {
      add(assigned.value, "updated", argumentAt(step, assigned.argument).name);
      step.setResultAttr(step.getNumResults() - 1, kUpdatesAttr, impl.builder.getI64IntegerAttr(assigned.argument));
    }
  }
  for (const GraphImpl::Update& update : impl.updates) {
    if (request.optimizer) {
      add(update.gradient, "gradient", gradientName(argumentAt(step, update.argument).name));
      step.setResultAttr(step.getNumResults() - 1, kOptimizerAttr, optimizerAttribute(impl.builder, update.optimizer));
    }
  }
  if (step.getNumResults() == 0) {
    return absl::InvalidArgumentError(
        "compileForward: the graph puts nothing out; call Graph::output, or give the loss");
  }
  mlir::OwningOpRef<mlir::ModuleOp> copy = impl.module->clone();
  Request own = request;
  layOutStates(stepFunction(*copy), own.options);
  setRequest(*copy, own);
  return copy;
}

absl::StatusOr<Program> compileAs(const std::string& program, Graph& graph, mlir::ModuleOp module,
                                  const CompileOptions& options) {
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  PipelineOptions pipeline;
  pipeline.dumpDir = options.dumpDir;
  if (!options.decisions.empty()) {
    WEFT_ASSIGN_OR_RETURN(pipeline.decisions, parseDecisions(options.decisions));
  }
  pipeline.from = options.from;
  pipeline.program = program;
  Program made;
  CompileReport report;
  WEFT_ASSIGN_OR_RETURN(made.plan, compileModule(module, registry, pipeline, &report));
  made.notes = std::move(report.notes);
  made.compilations = report.compilations;
  for (const Argument& argument : argumentsOf(graph.impl()->step)) {
    if (argument.kind == "state") {
      made.states.push_back(argument.name);
    }
  }
  return made;
}

absl::Status checkLoss(const Tensor& loss) {
  if (!loss.valid()) {
    return absl::InvalidArgumentError(
        "compile: the loss is no tensor of a graph; a program without one is made by "
        "compileForward");
  }
  if (!loss.shape().empty() || (loss.type() != Type::kF32 && loss.type() != Type::kF64)) {
    return errorOf(loss, absl::StrCat("compile: the loss should be a float scalar, it is ", describe(loss), "; ",
                                      loss.shape().empty() ? "cast it" : "take mean(loss)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> compile(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(graph.status());
  WEFT_RETURN_IF_ERROR(checkLoss(loss));
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, {options, optimizer}));
  return compileAs(kTrainingProgram, graph, *module, options);
}

absl::StatusOr<MemoryAdvice> advise(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                    const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(graph.status());
  WEFT_RETURN_IF_ERROR(checkLoss(loss));
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, {options, optimizer}));
  return adviseModule(*module, ir::OperatorRegistry::builtin());
}

absl::StatusOr<Program> compileForward(Graph& graph, const Tensor& loss, const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, {options, std::nullopt}));
  return compileAs("evaluate", graph, *module, options);
}

// One layout, or one for each submesh where their meshes differ.
static std::string layoutText(const ArgumentDecision& argument, const Shape& shape, const StageMeshes& meshes) {
  // Every stored size is named, padded or not: what would pad it for the forward program alone may not.
  const auto print = [&](Layout layout, const Mesh& mesh) {
    for (size_t d = 0; d < layout.dimensions(); ++d) {
      layout.setPad(d, layout.storedSize(d, shape[d]));
    }
    return layout.print(mesh);
  };
  std::string text = print(argument.layout, meshes.ofStage(argument.stage));
  for (size_t submesh = 0; !meshes.same() && submesh < meshes.ofSubmesh.size(); ++submesh) {
    const int64_t number = meshes.numberOfSubmesh(static_cast<int64_t>(submesh));
    const auto it = argument.elsewhere.find(number);
    const bool owner = number == meshes.number(argument.stage);
    const std::string mine = owner                            ? print(argument.layout, meshes.ofStage(argument.stage))
                             : it != argument.elsewhere.end() ? print(it->second, meshes.withNumber(number))
                                                              : Layout(argument.layout.dimensions()).print(Mesh());
    text = submesh == 0 ? mine : text + ";" + mine;
  }
  return text;
}

// Of the parameters, and of the states of the graph.
static std::map<std::string, Shape> storedShapes(const Program& program) {
  std::map<std::string, Shape> shapes;
  for (const plan::Plan* submesh : submeshesOf(program.plan)) {
    for (const plan::NamedTensor& tensor : submesh->tensors()) {
      const bool isState = std::count(program.states.begin(), program.states.end(), tensor.name()) > 0;
      if (tensor.kind() == plan::TENSOR_PARAMETER || isState) {
        shapes[tensor.name()] = {tensor.shape().begin(), tensor.shape().end()};
      }
    }
  }
  return shapes;
}

std::vector<std::pair<std::string, std::string>> parameterLayouts(const Program& program) {
  std::vector<std::pair<std::string, std::string>> layouts;
  const absl::StatusOr<Decisions> decisions = parseDecisions(program.decisions());
  if (!decisions.ok()) {
    return layouts;
  }
  const std::map<std::string, Shape> shapes = storedShapes(program);
  for (const ArgumentDecision& argument : decisions->arguments) {
    if (const auto shape = shapes.find(argument.name); shape != shapes.end()) {
      layouts.emplace_back(argument.name, layoutText(argument, shape->second, decisions->meshes()));
    }
  }
  return layouts;
}

// Of the parameters and states that are not on the first alone.
static std::map<std::string, std::vector<int64_t>> parameterStages(const Program& program, const Decisions& decisions) {
  const std::map<std::string, Shape> parameters = storedShapes(program);
  std::map<std::string, std::vector<int64_t>> stages;
  for (const ArgumentDecision& argument : decisions.arguments) {
    const bool isOnFirstAlone = argument.stage == 0 && argument.laterStages.empty();
    if (!isOnFirstAlone && parameters.count(argument.name) > 0) {
      std::vector<int64_t>& ofParameter = stages[argument.name] = {argument.stage};
      ofParameter.insert(ofParameter.end(), argument.laterStages.begin(), argument.laterStages.end());
    }
  }
  return stages;
}

CompileOptions forwardOptions(const Program& training, CompileOptions options) {
  options.micro = 1;
  options.zero = 0;
  options.zeroOf.clear();
  options.memoryLimit = 0;
  options.departures = 0;
  options.without.clear();
  options.from.clear();
  options.dumpDir.clear();
  options.decisions.clear();
  options.layouts = parameterLayouts(training);
  const absl::StatusOr<Decisions> decisions = parseDecisions(training.decisions());
  if (decisions.ok() && (options.mode == Mode::kAuto || isOpenMesh(options.mesh)) && options.stageMeshes.empty()) {
    const bool areUnlike = !decisions->stageMeshes.empty();
    options.mesh = areUnlike ? "" : decisions->mesh.ofRanks().print();
    options.stageMeshes = areUnlike ? printStageMeshes(decisions->stageMeshes) : "";
    options.devices = 1;
  }
  if (decisions.ok() && options.mode == Mode::kAuto) {
    options.mode = Mode::kLayouts;
    options.stages = parameterStages(training, *decisions);
  }
  if (decisions.ok() && decisions->schedule.submeshes.size() > 1) {
    options.schedule = decisions->schedule.kind;
    options.virtualStages = decisions->schedule.virtualStages;
    options.scheduleTable = decisions->schedule.table;
  }
  return options;
}

absl::StatusOr<std::string> logicalModule(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                          const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(graph.status());
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, {options, optimizer}));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true, false));
  return text;
}

}  // namespace weft
