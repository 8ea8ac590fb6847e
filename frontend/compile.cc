#include "weft/compile.h"

#include <map>

#include "absl/strings/str_cat.h"
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
    add(loss, "loss", "loss");
  }
  for (const auto& [name, value] : impl.outputs) {
    add(value, "output", name);
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
  mlir::OwningOpRef<mlir::ModuleOp> copy = impl.module->clone();
  setRequest(*copy, request);
  return copy;
}

absl::StatusOr<Program> compileAs(const std::string& program, mlir::ModuleOp module, const CompileOptions& options) {
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
  return made;
}

absl::Status checkLoss(const Tensor& loss) {
  if (!loss.valid()) {
    return absl::InvalidArgumentError("compile: the loss is no tensor of a graph");
  }
  if (!loss.shape().empty() || (loss.type() != Type::kF32 && loss.type() != Type::kF64)) {
    return absl::InvalidArgumentError(absl::StrCat("compile: the loss should be a float scalar, it has ",
                                                   loss.shape().size(), " dimensions; take mean(loss)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> compile(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(graph.status());
  WEFT_RETURN_IF_ERROR(checkLoss(loss));
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, {options, optimizer}));
  return compileAs("train", *module, options);
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
  return compileAs("evaluate", *module, options);
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

static std::map<std::string, Shape> parameterShapes(const plan::Plan& plan) {
  std::map<std::string, Shape> shapes;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::NamedTensor& tensor : submesh->tensors()) {
      if (tensor.kind() == plan::TENSOR_PARAMETER) {
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
  const std::map<std::string, Shape> shapes = parameterShapes(program.plan);
  for (const ArgumentDecision& argument : decisions->arguments) {
    if (const auto shape = shapes.find(argument.name); shape != shapes.end()) {
      layouts.emplace_back(argument.name, layoutText(argument, shape->second, decisions->meshes()));
    }
  }
  return layouts;
}

// Of the parameters that are not on the first.
static std::map<std::string, int64_t> parameterStages(const plan::Plan& plan, const Decisions& decisions) {
  const std::map<std::string, Shape> parameters = parameterShapes(plan);
  std::map<std::string, int64_t> stages;
  for (const ArgumentDecision& argument : decisions.arguments) {
    if (argument.stage > 0 && parameters.count(argument.name) > 0) {
      stages[argument.name] = argument.stage;
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
    options.stages = parameterStages(training.plan, *decisions);
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
