#include <filesystem>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/logical/module_file.h"

namespace weft {

using namespace mlir;  // NOLINT

#define GEN_PASS_DECL_DUMPPASS  // its options
#define GEN_PASS_DEF_DUMPPASS
#include "passes/generated/passes.h.inc"

namespace {

class DumpPass : public impl::DumpPassBase<DumpPass> {
 public:
  using Base::Base;

  void runOnOperation() override {
    const std::filesystem::path path(file.getValue());
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);  // if it fails, so does writing
    if (const absl::Status status = writeModuleFile(getOperation(), path.string()); !status.ok()) {
      getOperation()->emitError("dump of the IR: " + std::string(status.message()));
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

}  // namespace
}  // namespace weft
