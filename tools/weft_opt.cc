// weft-opt: reads a module, runs passes given as options, prints the module. For tests and the curious.
#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/register.h"

int main(int argc, char** argv) {
  const weft::ir::OperatorRegistry operators = weft::ir::OperatorRegistry::builtin();
  weft::registerWeftPasses(operators);
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();

  mlir::DialectRegistry dialects;
  dialects.insert<mlir::func::FuncDialect, weft::ir::nn::NnDialect, weft::ir::dist::DistDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Weft's pass driver\n", dialects));
}
