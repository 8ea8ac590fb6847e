#include "passes/register.h"

#include "passes/comm/passes.h"
#include "passes/decide/passes.h"
#include "passes/gates/passes.h"
#include "passes/grad/passes.h"
#include "passes/partition/passes.h"
#include "passes/simplify/passes.h"
#include "passes/update/passes.h"

namespace weft {

void registerWeftPasses(const ir::OperatorRegistry& registry) {
  const ir::OperatorRegistry* operators = &registry;
  mlir::registerPass([] { return createSimplifyPass(); });
  mlir::registerPass([operators] { return createBuildGradientsPass(*operators); });
  mlir::registerPass([] { return createBuildUpdatePass(); });
  mlir::registerPass([operators] { return createDecidePass(*operators); });
  mlir::registerPass([] { return createInsertReshardsPass(); });
  mlir::registerPass([] { return createLocalizePass(); });
  mlir::registerPass([] { return createFormReduceScatterPass(); });
  mlir::registerPass([] { return createFormBucketsPass(); });
  mlir::registerPass([] { return createVerifyLogicalPass(); });
  mlir::registerPass([] { return createVerifyAnnotatedPass(); });
  mlir::registerPass([] { return createVerifyLocalPass(); });
  mlir::registerPass([] { return createVerifyScheduledPass(); });
}

}  // namespace weft
