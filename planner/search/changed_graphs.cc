#include "planner/search/changed_graphs.h"

#include <map>
#include <utility>

#include "planner/graph/precision.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

class ChangedGraphs {
 public:
  ChangedGraphs(GraphFor graphs, GraphChange change) : graphs_(std::move(graphs)), change_(std::move(change)) {}

  absl::StatusOr<std::shared_ptr<const ProgramGraph>> of(int64_t microBatches) {
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> before, graphs_(microBatches));
    std::shared_ptr<const ProgramGraph>& made = made_[before];
    if (made == nullptr) {
      WEFT_ASSIGN_OR_RETURN(ProgramGraph changed, change_(*before));
      made = std::make_shared<const ProgramGraph>(std::move(changed));
    }
    return made;
  }

 private:
  GraphFor graphs_;
  GraphChange change_;
  std::map<std::shared_ptr<const ProgramGraph>, std::shared_ptr<const ProgramGraph>> made_;
};

}  // namespace

GraphFor changedGraphs(GraphFor graphs, GraphChange change) {
  return [changed = std::make_shared<ChangedGraphs>(std::move(graphs), std::move(change))](int64_t microBatches) {
    return changed->of(microBatches);
  };
}

GraphFor inPrecision(GraphFor graphs, DType type) {
  return changedGraphs(std::move(graphs), [type](const ProgramGraph& wide) { return inPrecision(wide, type); });
}

}  // namespace weft
