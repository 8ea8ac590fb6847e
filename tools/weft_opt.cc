// weft-opt: reads a module, runs passes given as options, prints the module. For tests and the curious.
#include <iostream>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/registry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/logical/module_file.h"
#include "passes/register.h"

namespace {

// MLIR's driver, with what a dump keeps beside the module put back before the first pass.
mlir::LogicalResult runOn(const std::string& input, const std::string& output, mlir::DialectRegistry& dialects) {
  const mlir::MlirOptMainConfig given = mlir::MlirOptMainConfig::createFromCLOptions();
  mlir::MlirOptMainConfig config = given;
  config.setPassPipelineSetupFn([&](mlir::PassManager& manager) {
    manager.addPass(weft::createRestoreModulePass(input));
    return given.setupPassPipeline(manager);
  });
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> file = text ? mlir::openOutputFile(output, &error) : nullptr;
  if (!file) {
    std::cerr << "weft-opt: " << error << "\n";
    return mlir::failure();
  }
  if (mlir::failed(mlir::MlirOptMain(file->os(), std::move(text), dialects, config))) {
    return mlir::failure();
  }
  file->keep();
  return mlir::success();
}

}  // namespace

int main(int argc, char** argv) {
  const weft::ir::OperatorRegistry operators = weft::ir::OperatorRegistry::builtin();
  weft::registerWeftPasses(operators);
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();

  mlir::DialectRegistry dialects;
  dialects.insert<mlir::func::FuncDialect, weft::ir::nn::NnDialect, weft::ir::dist::DistDialect>();
  const auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Weft's pass driver\n", dialects);
  if (mlir::MlirOptMainConfig::createFromCLOptions().shouldShowDialects()) {
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, dialects));
  }
  return mlir::asMainReturnCode(runOn(input, output, dialects));
}
