#include "passes/phase_passes.h"

#include <cstdio>
#include <filesystem>

#include "ir/program/program.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/base/file_writer.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

class EndPhasePass : public PassWrapper<EndPhasePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EndPhasePass)
  explicit EndPhasePass(std::string phase) : phase_(std::move(phase)) {}

  void runOnOperation() override {
    getOperation()->setAttr(kPhaseDoneAttr, StringAttr::get(&getContext(), phase_));
    markAllAnalysesPreserved();  // which read the program and its record
  }

 private:
  std::string phase_;
};

class DumpPass : public PassWrapper<DumpPass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DumpPass)
  DumpPass(std::string directory, const std::string& name) : directory_(std::move(directory)), name_(name) {}

  void runOnOperation() override {
    const std::filesystem::path path = std::filesystem::path(directory_) / name_;
    std::error_code error;
    std::filesystem::create_directories(directory_, error);  // if it fails, so does writing
    std::string text;
    llvm::raw_string_ostream stream(text);
    getOperation()->print(stream, OpPrintingFlags().enableDebugInfo(true, false).assumeVerified());
    if (const absl::Status status = writeFile(path.string(), text); !status.ok()) {
      getOperation()->emitError("dump of the IR: " + std::string(status.message()));
      signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

 private:
  std::string directory_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Pass> createEndPhasePass(const std::string& phase) {
  return std::make_unique<EndPhasePass>(phase);
}

std::unique_ptr<Pass> createDumpPass(const std::string& directory, int number, const std::string& name) {
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%02d-", number);
  return std::make_unique<DumpPass>(directory, digits + name + ".mlir");
}

}  // namespace weft
