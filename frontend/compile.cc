#include "weft/compile.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph_impl.h"
#include "ir/dist/dist.h"
#include "ir/registry.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "passes/pipeline.h"
#include "passes/support/decisions.h"
#include "passes/support/program.h"
#include "passes/support/stage_meshes.h"
#include "runtime/base/status.h"

namespace weft {

using mlir::NamedAttrList;

Optimizer::Optimizer(const optim::Sgd& o)
    : kind("sgd"),
      settings{{"lr", o.lr}, {"momentum", o.momentum}, {"weight_decay", o.weightDecay}},
      nesterov(o.nesterov) {}

Optimizer::Optimizer(const optim::Adam& o)
    : kind("adam"),
      settings{{"lr", o.lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"epsilon", o.epsilon},
               {"weight_decay", o.weightDecay}} {}

Optimizer::Optimizer(const optim::AdamW& o)
    : kind("adamw"),
      settings{{"lr", o.lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"epsilon", o.epsilon},
               {"weight_decay", o.weightDecay}} {}

namespace {

// The first of the blocks' meshes, which has to go with what else is said of ranks.
absl::StatusOr<Mesh> firstStageMesh(const CompileOptions& options) {
  if (!options.mesh.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("mesh '", options.mesh, "' and stage meshes '", options.stageMeshes,
                                                   "' are both given; give one mesh for all stages or one for each"));
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, parseStageMeshes(options.stageMeshes, 1));
  int64_t ranks = 0;
  for (const Mesh& mesh : meshes) {
    ranks += mesh.ranks();
  }
  if (options.devices != 1 && options.devices != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("the stage meshes ", options.stageMeshes, " have ", ranks,
                                                   " ranks together, but devices = ", options.devices,
                                                   "; make the meshes fill the devices, or leave devices out"));
  }
  return meshes[0];
}

absl::StatusOr<Mesh> meshOf(const CompileOptions& options) {
  const std::string text = options.mesh.empty() ? std::to_string(options.devices) : options.mesh;
  WEFT_ASSIGN_OR_RETURN(Mesh mesh, options.stageMeshes.empty() ? Mesh::parse(text) : firstStageMesh(options));
  if (options.micro < 1) {
    return absl::InvalidArgumentError(absl::StrCat("micro = ", options.micro, "; a step has at least 1 micro-batch"));
  }
  return options.micro > 1 ? mesh.withMicro(options.micro) : mesh;
}

absl::Status checkOptions(const CompileOptions& options) {
  if (options.zero < 0 || options.zero > 3) {
    return absl::InvalidArgumentError(absl::StrCat("zero = ", options.zero, "; the ZeRO level is 0, 1, 2 or 3"));
  }
  if (options.clipNorm < 0) {
    return absl::InvalidArgumentError(absl::StrCat("clipNorm = ", options.clipNorm, "; it is at least 0 (0 = none)"));
  }
  return absl::OkStatus();
}

void setModuleAttributes(GraphImpl& graph, mlir::ModuleOp module, const Mesh& mesh, const CompileOptions& options) {
  mlir::OpBuilder& builder = graph.builder;
  NamedAttrList entries;
  entries.set("zero", builder.getI64IntegerAttr(options.zero));
  entries.set("default", builder.getStringAttr(options.fill == Fill::kDataParallel ? "data_parallel" : "replicate"));
  entries.set("schedule", builder.getStringAttr(options.schedule));
  entries.set("schedule_table", builder.getStringAttr(options.scheduleTable));
  entries.set("memory_limit", builder.getI64IntegerAttr(options.memoryLimit));
  entries.set("virtual", builder.getI64IntegerAttr(options.virtualStages));
  entries.set("recompute", builder.getStringAttr(options.recompute));
  entries.set("regather", builder.getStringAttr(options.regather ? "regather" : "keep"));
  entries.set("clip_norm", builder.getF64FloatAttr(options.clipNorm));
  entries.set("seed", builder.getI64IntegerAttr(options.seed));
  entries.set("gradient_outputs", builder.getBoolAttr(options.gradientOutputs));
  module->setAttr("nn.options", entries.getDictionary(&graph.context));
  module->setAttr("dist.mesh", ir::dist::MeshAttr::get(&graph.context, mesh.print()));
  if (!options.stageMeshes.empty()) {
    module->setAttr(kStageMeshesAttr, builder.getStringAttr(options.stageMeshes));
  }
  llvm::SmallVector<mlir::Attribute> layouts;
  for (const auto& [pattern, layout] : options.layouts) {
    layouts.push_back(builder.getArrayAttr({builder.getStringAttr(pattern), builder.getStringAttr(layout)}));
  }
  module->setAttr("nn.layouts", builder.getArrayAttr(layouts));
}

mlir::Attribute optimizerAttribute(GraphImpl& graph, const Optimizer& optimizer) {
  NamedAttrList entries;
  entries.set("kind", graph.builder.getStringAttr(optimizer.kind));
  entries.set("nesterov", graph.builder.getBoolAttr(optimizer.nesterov));
  for (const auto& [name, value] : optimizer.settings) {
    entries.set(name, graph.builder.getF64FloatAttr(value));
  }
  return entries.getDictionary(&graph.context);
}

// A copy of the graph's module, so that one graph can be compiled several times. Only a training program changes state.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> moduleFor(Graph& graph, const Tensor& loss,
                                                            const CompileOptions& options, bool trains) {
  GraphImpl& impl = *graph.impl();
  WEFT_RETURN_IF_ERROR(impl.status);
  WEFT_RETURN_IF_ERROR(checkOptions(options));
  WEFT_ASSIGN_OR_RETURN(const Mesh mesh, meshOf(options));
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
  for (const auto& [index, value] : impl.assignments) {
    if (trains) {
      add(value, "updated", argumentAt(step, index).name);
      step.setResultAttr(step.getNumResults() - 1, kUpdatesAttr, impl.builder.getI64IntegerAttr(index));
    }
  }
  mlir::OwningOpRef<mlir::ModuleOp> copy = impl.module->clone();
  setModuleAttributes(impl, *copy, mesh, options);
  return copy;
}

absl::StatusOr<Program> compileAs(const std::string& program, mlir::ModuleOp module, const CompileOptions& options) {
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  PipelineOptions pipeline;
  pipeline.dumpDir = options.dumpDir;
  pipeline.decisions = options.decisions;
  pipeline.program = program;
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileModule(module, registry, pipeline));
  return Program{std::move(plan)};
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
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, options, true));
  (*module)->setAttr("nn.optimizer", optimizerAttribute(*graph.impl(), optimizer));
  return compileAs("train", *module, options);
}

absl::StatusOr<Program> compileForward(Graph& graph, const Tensor& loss, const CompileOptions& options) {
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, options, false));
  return compileAs("evaluate", *module, options);
}

// One layout, or one for each block where their meshes differ.
static std::string layoutText(const ArgumentDecision& argument, const StageMeshes& meshes) {
  std::string text = argument.layout.print(meshes.ofStage(argument.stage));
  for (size_t block = 0; !meshes.same() && block < meshes.ofBlock.size(); ++block) {
    const int64_t number = meshes.numberOfBlock(static_cast<int64_t>(block));
    const auto it = argument.elsewhere.find(number);
    const bool home = number == meshes.number(argument.stage);
    const std::string mine = home                             ? argument.layout.print(meshes.ofStage(argument.stage))
                             : it != argument.elsewhere.end() ? it->second.print(meshes.withNumber(number))
                                                              : Layout(argument.layout.dimensions()).print(Mesh());
    text = block == 0 ? mine : text + ";" + mine;
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> parameterLayouts(const Program& program) {
  std::vector<std::pair<std::string, std::string>> layouts;
  const absl::StatusOr<Decisions> decisions = parseDecisions(program.decisions());
  if (!decisions.ok()) {
    return layouts;
  }
  for (const ArgumentDecision& argument : decisions->arguments) {
    layouts.emplace_back(argument.name, layoutText(argument, decisions->meshes()));
  }
  return layouts;
}

CompileOptions forwardOptions(const Program& training, CompileOptions options) {
  options.micro = 1;
  options.zero = 0;
  options.memoryLimit = 0;
  options.dumpDir.clear();
  options.decisions.clear();
  options.layouts = parameterLayouts(training);
  const absl::StatusOr<Decisions> decisions = parseDecisions(training.decisions());
  if (decisions.ok() && decisions->schedule.blocks.size() > 1) {
    options.schedule = decisions->schedule.kind;
    options.virtualStages = decisions->schedule.virtualStages;
    options.scheduleTable = decisions->schedule.table;
  }
  return options;
}

absl::StatusOr<std::string> logicalModule(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                          const CompileOptions& options) {
  WEFT_RETURN_IF_ERROR(graph.status());
  WEFT_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, moduleFor(graph, loss, options, true));
  (*module)->setAttr("nn.optimizer", optimizerAttribute(*graph.impl(), optimizer));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true, false));
  return text;
}

}  // namespace weft
