#include "passes/register.h"

#include "passes/passes.h"
#include "passes/pipeline.h"

namespace weft {

namespace {

#define GEN_PASS_REGISTRATION
#include "passes/generated/passes.h.inc"

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
  // Those that ask the registry first: of two registrations of one name the first counts, and the declared ones know
  // the built-in operators only.
  mlir::registerPass([operators] { return createBuildGradientsPass(*operators); });
  mlir::registerPass([operators] { return createDecidePass(*operators); });
  registerDeclaredPasses();
  registerCompile(*operators);
}

}  // namespace weft
