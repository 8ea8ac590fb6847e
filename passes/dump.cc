#include <filesystem>

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "runtime/base/file_writer.h"

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
    std::string text;
    llvm::raw_string_ostream stream(text);
    getOperation()->print(stream, OpPrintingFlags().enableDebugInfo(true, false).assumeVerified());
    if (const absl::Status status = writeFile(path.string(), text); !status.ok()) {
      getOperation()->emitError("dump of the IR: " + std::string(status.message()));
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

}  // namespace
}  // namespace weft
