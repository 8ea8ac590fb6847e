#include "passes/decide/graph_source.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mlir/IR/Diagnostics.h"
#include "planner/graph/segments.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

// The first error while it lives.
class FirstError {
 public:
  explicit FirstError(MLIRContext* context)
      : handler_(context, [this](Diagnostic& diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && status_.ok()) {
            status_ = errorAt(placeOf(diagnostic.getLocation()), diagnostic.str());
          }
          return success();
        }) {}

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
  ScopedDiagnosticHandler handler_;
};

class Source {
 public:
  Source(func::FuncOp step, const ir::OperatorRegistry& registry, int64_t rowParts)
      : step_(step), registry_(registry), rowParts_(rowParts) {}

  absl::StatusOr<std::shared_ptr<const ProgramGraph>> of(int64_t microBatches) {
    if (shared_) {
      return shared_;
    }
    if (const auto it = built_.find(microBatches); it != built_.end()) {
      return it->second;
    }
    const FirstError error(step_.getContext());
    const Expansions expansions = {registry_, {microBatches, rowParts_}};
    FailureOr<ProgramGraph> graph = buildProgramGraph(step_, expansions);
    if (failed(graph)) {
      return error.status();
    }
    markAlike(*graph);
    auto made = std::make_shared<const ProgramGraph>(*std::move(graph));
    (expansions.context.asked() ? built_[microBatches] : shared_) = made;
    return made;
  }

 private:
  func::FuncOp step_;
  const ir::OperatorRegistry& registry_;
  int64_t rowParts_;
  std::shared_ptr<const ProgramGraph> shared_;  // where all numbers of micro-batches give the same
  std::map<int64_t, std::shared_ptr<const ProgramGraph>> built_;
};

}  // namespace

GraphFor graphSource(func::FuncOp step, const ir::OperatorRegistry& registry, int64_t rowParts) {
  auto source = std::make_shared<Source>(step, registry, rowParts);
  return [source](int64_t microBatches) { return source->of(microBatches); };
}

}  // namespace weft
