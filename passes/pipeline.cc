#include "passes/pipeline.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/passes.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

// What a module is between two phases. Logical, annotated, local and scheduled are the states that people resume from;
// the others lie on the way, and have gates for files that say they are there.
enum class State : uint8_t { kLogical, kLaidOut, kAnnotated, kCut, kLocal, kOrdered, kStored, kScheduled };

std::unique_ptr<Pass> gateOf(State state) {
  switch (state) {
    case State::kLogical:
      return createVerifyLogicalPass();
    case State::kLaidOut:
      return createVerifyLaidOutPass();
    case State::kAnnotated:
      return createVerifyAnnotatedPass();
    case State::kCut:
      return createVerifyCutPass();
    case State::kLocal:
      return createVerifyLocalPass();
    case State::kOrdered:
      return createVerifyOrderedPass();
    case State::kStored:
      return createVerifyStoredPass();
    case State::kScheduled:
      return createVerifyScheduledPass();
  }
  return nullptr;
}

// A pass, and the state it leaves. The phase that closes a state ends with its gate.
struct PipelinePhase {
  std::unique_ptr<Pass> pass;
  State leaves = State::kLogical;
  bool closes = false;

  std::string name() const { return pass->getArgument().substr(StringRef("weft-").size()).str(); }
};

// Number of the phase after which a module is in the state or behind the phase `from` names; none if nothing is named
// so.
std::optional<size_t> phaseNamed(const std::vector<PipelinePhase>& phases, const std::string& from) {
  const std::pair<StringRef, State> states[] = {
      {"annotated", State::kAnnotated}, {"local", State::kLocal}, {"scheduled", State::kScheduled}};
  for (size_t i = 0; i < phases.size(); ++i) {
    const bool closed = llvm::any_of(states, [&](const auto& state) {
      return state.first == from && phases[i].closes && phases[i].leaves == state.second;
    });
    if (closed || phases[i].name() == from) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

void registerWeftDialects(DialectRegistry& registry) {
  registry.insert<func::FuncDialect, ir::nn::NnDialect, ir::dist::DistDialect>();
}

namespace {

// The whole compiler, in order.
std::vector<PipelinePhase> phasesOf(const ir::OperatorRegistry& registry, const PipelineOptions& options) {
  std::vector<PipelinePhase> phases;
  const auto add = [&](State leaves, std::unique_ptr<Pass> pass) { phases.push_back({std::move(pass), leaves}); };
  const auto close = [&] { phases.back().closes = true; };
  // Before the gradient: what is folded here need not be differentiated.
  add(State::kLogical, createSimplifyPass());
  // Differentiates the serial program: gradients follow the user's operators, not the collectives.
  add(State::kLogical, createBuildGradientsPass(registry, /*ofLoss=*/options.program == "train"));
  // After the gradients exist, before layouts: optimizer state takes part in all decisions.
  add(State::kLogical, createBuildUpdatePass());
  // Everything that chooses stands here; what follows only realizes the record.
  add(State::kLogical, createDecidePass(registry, {options.decisions, options.correction, options.from}));
  // First of all that realizes: whatever moves or fills a value asks how it lies, and how it is read.
  add(State::kLaidOut, createAssignLayoutsPass());
  // Before reshards: what comes from another mesh is then resharded as any value of its reader's mesh.
  add(State::kLaidOut, createInsertTransfersPass());
  // Before whatever reads the values that an operator itself reads.
  add(State::kLaidOut, createInsertReshardsPass());
  // On reshards: a new value is sent as it replaces the argument at home.
  add(State::kLaidOut, createSendUpdatesPass());
  // On reshards: a mask fills what the operator itself reads.
  add(State::kLaidOut, createMaskPadsPass());
  // On reshards and masks, which have marks of their own.
  add(State::kAnnotated, createMarkRecomputePass());
  close();
  // On reshards too: what is gathered for a recomputed operator is gathered again.
  add(State::kAnnotated, createRecomputePass());
  // On the whole step: what is read where, recomputed or not, says what crosses between functions and submeshes.
  add(State::kCut, createCutFunctionsPass());
  // After the cut: sums over micro-batches have become accumulations, and a crossing does not depend on a reshard's
  // path.
  add(State::kCut, createLowerReshardsPass());
  // After all that reads layouts: types say them no more.
  add(State::kLocal, createLocalizeShapesPass());
  close();
  // On functions: what another stage waits for is sent to it, or read by its function.
  add(State::kLocal, createSplitBackwardPass());
  // On explicit collectives. (The reshard planner has already made most reduce_scatters; first those that are left,
  // because a bucket has several results.)
  add(State::kLocal, createFormReduceScatterPass());
  add(State::kLocal, createFormBucketsPass());
  // After buckets: what they join is the gradient itself, which is then no sum's part.
  add(State::kLocal, createFuseAccumulationsPass());
  // On the last functions. Before memory: how many micro-batches are in flight says how much of it there is.
  add(State::kOrdered, createWriteSchedulePass());
  // On the last operations: in place is what nothing else reads afterwards.
  add(State::kStored, createAssignStoragePass());
  // After all that makes a value, a copy, or a message under way.
  add(State::kScheduled, createPlanMemoryPass());
  close();
  return phases;
}

absl::Status unknownPhase(const std::vector<PipelinePhase>& phases, const std::string& from) {
  std::string names;
  for (const PipelinePhase& phase : phases) {
    names += (names.empty() ? "" : ", ") + phase.name();
  }
  return absl::InvalidArgumentError(absl::StrCat("no state or phase '", from,
                                                 "' to start from; the states are logical, annotated, local and "
                                                 "scheduled, the phases ",
                                                 names));
}

}  // namespace

absl::Status buildPipeline(OpPassManager& manager, const ir::OperatorRegistry& registry, const PipelineOptions& options,
                           const std::string& from) {
  std::vector<PipelinePhase> phases = phasesOf(registry, options);
  size_t first = 0;
  if (!from.empty() && from != "logical") {
    const std::optional<size_t> last = phaseNamed(phases, from);
    if (!last) {
      return unknownPhase(phases, from);
    }
    first = *last + 1;
  }
  const auto dump = [&](size_t number, const std::string& name) {
    if (!options.dumpDir.empty()) {
      manager.addPass(createDumpPass({options.dumpDir + "/" + llvm::formatv("{0,0+2}-{1}.mlir", number, name).str()}));
    }
  };
  if (first == 0) {
    dump(0, "input");
  }
  manager.addPass(gateOf(first == 0 ? State::kLogical : phases[first - 1].leaves));
  for (size_t i = first; i < phases.size(); ++i) {
    const std::string name = phases[i].name();
    manager.addPass(std::move(phases[i].pass));
    if (phases[i].closes) {
      manager.addPass(gateOf(phases[i].leaves));
    }
    manager.addPass(createEndPhasePass({name}));
    dump(i + 1, name);
    if (name == options.until) {
      break;
    }
  }
  return absl::OkStatus();
}

std::string resumePoint(ModuleOp module) {
  for (StringRef name : {kPhaseDoneAttr, kStateAttr}) {
    if (auto attr = module->getAttrOfType<StringAttr>(name)) {
      return attr.getValue().str();
    }
  }
  return "";
}

}  // namespace weft
