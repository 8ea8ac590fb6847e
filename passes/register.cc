#include "passes/register.h"

#include "passes/comm/passes.h"
#include "passes/decide/passes.h"
#include "passes/gates/passes.h"
#include "passes/logical/passes.h"
#include "passes/partition/passes.h"
#include "passes/pipeline.h"

namespace weft {

namespace {

// All phases behind a state or phase.
void registerCompile(const ir::OperatorRegistry& registry) {
  const ir::OperatorRegistry* operators = &registry;
  mlir::registerPassPipeline(
      "weft-compile", "All phases after from=STATE or from=PHASE (default: all)",
      [operators](mlir::OpPassManager& manager, llvm::StringRef options,
                  llvm::function_ref<mlir::LogicalResult(const llvm::Twine&)> report) -> mlir::LogicalResult {
        options.consume_front("from=");
        const absl::Status status = buildPipeline(manager, *operators, {}, options.trim().str());
        return status.ok() ? mlir::success() : report(std::string(status.message()));
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions&)>) {});
}

}  // namespace

void registerWeftPasses(const ir::OperatorRegistry& registry) {
  const ir::OperatorRegistry* operators = &registry;
  mlir::registerPass([] { return createSimplifyPass(); });
  mlir::registerPass([operators] { return createBuildGradientsPass(*operators); });
  mlir::registerPass([] { return createExpandBatchNormPass(); });
  mlir::registerPass([] { return createBuildUpdatePass(); });
  mlir::registerPass([operators] { return createDecidePass(*operators); });
  mlir::registerPass([] { return createAssignLayoutsPass(); });
  mlir::registerPass([] { return createInsertTransfersPass(); });
  mlir::registerPass([] { return createInsertReshardsPass(); });
  mlir::registerPass([] { return createSendUpdatesPass(); });
  mlir::registerPass([] { return createMaskPadsPass(); });
  mlir::registerPass([] { return createMarkRecomputePass(); });
  mlir::registerPass([] { return createRecomputePass(); });
  mlir::registerPass([] { return createCutFunctionsPass(); });
  mlir::registerPass([] { return createLowerReshardsPass(); });
  mlir::registerPass([] { return createLocalizeShapesPass(); });
  mlir::registerPass([] { return createSplitBackwardPass(); });
  mlir::registerPass([] { return createFormReduceScatterPass(); });
  mlir::registerPass([] { return createFormBucketsPass(); });
  mlir::registerPass([] { return createVerifyLogicalPass(); });
  mlir::registerPass([] { return createVerifyAnnotatedPass(); });
  mlir::registerPass([] { return createVerifyLocalPass(); });
  mlir::registerPass([] { return createVerifyScheduledPass(); });
  registerCompile(*operators);
}

}  // namespace weft
