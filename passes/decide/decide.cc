// Writes the decisions record: builds the program graph, asks the planner, makes the rewrites it decided.

#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "passes/decide/apply_rewrites.h"
#include "passes/decide/graph_source.h"
#include "passes/decide/passes.h"
#include "passes/logical/request_attributes.h"

namespace weft {

#define GEN_PASS_DEF_DECIDEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

class DecidePass : public impl::DecidePassBase<DecidePass> {
 public:
  DecidePass(const ir::OperatorRegistry& registry, DecideOptions options)
      : registry_(registry), options_(std::move(options)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp step = stepFunction(module);
    const FailureOr<Request> request = readRequest(module);
    if (failed(request) || !step || failed(meshOf(module))) {
      return signalPassFailure();
    }
    const absl::StatusOr<ir::ExpansionContext> context = expansionContextOf(request->options);
    if (!context.ok()) {
      emitPlannerError(module, context.status());
      return signalPassFailure();
    }
    FailureOr<Decisions> record = options_.record ? *options_.record : decide(step, request->options, *context);
    if (failed(record)) {
      return signalPassFailure();
    }
    // The number of micro-batches may have been found.
    const Expansions expansions = {registry_, {record->mesh.microBatches(), context->rowParts()}};
    if (failed(applyRewrites(step, record->rewrites, expansions))) {
      return signalPassFailure();
    }
    setDecisions(module, *std::move(record));
  }

 private:
  FailureOr<Decisions> decide(func::FuncOp step, const CompileOptions& options, const ir::ExpansionContext& context) {
    const GraphFor graphs = graphSource(step, registry_, context.rowParts());
    CompileOptions compiled = options;
    compiled.from = options_.from;
    compiled.overlap = false;  // ranks have one queue
    compiled.offload = Offload::kNone;
    absl::StatusOr<Decisions> record = planProgram(graphs, compiled, options_.correction);
    if (!record.ok()) {
      emitPlannerError(step->getParentOfType<ModuleOp>(), record.status());
      return failure();
    }
    if (options.overlap) {
      record->notes.push_back("overlap is left out of what is compiled: ranks have one queue; `weft plan` plans it");
    }
    if (options.offload != Offload::kNone) {
      record->notes.push_back("offload is left out of what is compiled: ranks have one memory; `weft plan` plans it");
    }
    return *std::move(record);
  }

  ir::OperatorRegistry registry_;
  DecideOptions options_;
};

}  // namespace

std::unique_ptr<Pass> createDecidePass(const ir::OperatorRegistry& registry, DecideOptions options) {
  return std::make_unique<DecidePass>(registry, std::move(options));
}

}  // namespace weft
