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
    FailureOr<Decisions> record = options_.record ? *options_.record : decide(module, step);
    if (failed(record) || failed(applyRewrites(step, record->rewrites, registry_))) {
      return signalPassFailure();
    }
    setDecisions(module, *std::move(record));
  }

 private:
  FailureOr<Decisions> decide(ModuleOp module, func::FuncOp step) {
    const FailureOr<Request> request = readRequest(module);
    if (failed(request) || !step || failed(meshOf(module))) {
      return failure();
    }
    FailureOr<ProgramGraph> graph = buildProgramGraph(step, &registry_);
    if (failed(graph)) {
      return failure();
    }
    absl::StatusOr<Decisions> record = planProgram(*graph, request->options, options_.correction);
    if (!record.ok()) {
      emitPlannerError(module, record.status());
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
