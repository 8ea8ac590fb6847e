#include "passes/support/dump.h"

#include <cstdio>
#include <filesystem>

#include "llvm/Support/raw_ostream.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

class DumpInstrumentation : public PassInstrumentation {
 public:
  explicit DumpInstrumentation(std::string directory) : directory_(std::move(directory)) {}

  void runBeforePass(Pass* pass, Operation* op) override {
    if (count_ == 0) {
      write("input", op);
    }
  }

  void runAfterPass(Pass* pass, Operation* op) override {
    const std::string name = pass->getArgument().str();
    // Gates change nothing.
    if (name.find("verify") == std::string::npos && !name.empty()) {
      write(name, op);
    }
  }

 private:
  void write(const std::string& name, Operation* op) {
    char number[16];
    std::snprintf(number, sizeof(number), "%02d-", count_++);
    const std::string shortName = name.rfind("weft-", 0) == 0 ? name.substr(5) : name;
    const std::filesystem::path path = std::filesystem::path(directory_) / (number + shortName + ".mlir");
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    llvm::raw_fd_ostream stream(path.string(), error);
    if (error) {
      op->emitWarning("cannot write " + path.string() + ": " + error.message());
      return;
    }
    op->print(stream, OpPrintingFlags().enableDebugInfo(true, false).assumeVerified());
  }

  std::string directory_;
  int count_ = 0;
};

}  // namespace

void addDumps(PassManager& manager, const std::string& directory) {
  manager.getContext()->disableMultithreading();
  manager.addInstrumentation(std::make_unique<DumpInstrumentation>(directory));
}

}  // namespace weft
