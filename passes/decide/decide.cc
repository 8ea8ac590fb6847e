// Writes the decisions record: builds the program graph, asks the planner, makes the rewrites it decided.

#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "passes/decide/apply_rewrites.h"
#include "passes/decide/build_program_graph.h"
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
    const Expansions expansions = {registry_, *context};
    FailureOr<Decisions> record = options_.record ? *options_.record : decide(step, request->options, expansions);
    if (failed(record) || failed(applyRewrites(step, record->rewrites, expansions))) {
      return signalPassFailure();
    }
    setDecisions(module, *std::move(record));
  }

 private:
  FailureOr<Decisions> decide(func::FuncOp step, const CompileOptions& options, const Expansions& expansions) {
    FailureOr<ProgramGraph> graph = buildProgramGraph(step, expansions);
    if (failed(graph)) {
      return failure();
    }
    absl::StatusOr<Decisions> record = planProgram(*graph, options, options_.correction);
    if (!record.ok()) {
      emitPlannerError(step->getParentOfType<ModuleOp>(), record.status());
      return failure();
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
