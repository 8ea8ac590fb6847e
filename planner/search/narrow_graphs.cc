#include "planner/search/narrow_graphs.h"

#include <map>
#include <utility>

#include "planner/graph/precision.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

class NarrowGraphs {
 public:
  NarrowGraphs(GraphFor graphs, DType type) : graphs_(std::move(graphs)), type_(type) {}

  absl::StatusOr<std::shared_ptr<const ProgramGraph>> of(int64_t microBatches) {
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> wide, graphs_(microBatches));
    std::shared_ptr<const ProgramGraph>& made = made_[wide];
    if (made == nullptr) {
      WEFT_ASSIGN_OR_RETURN(ProgramGraph narrow, inPrecision(*wide, type_));
      made = std::make_shared<const ProgramGraph>(std::move(narrow));
    }
    return made;
  }

 private:
  GraphFor graphs_;
  DType type_;
  std::map<std::shared_ptr<const ProgramGraph>, std::shared_ptr<const ProgramGraph>> made_;
};

}  // namespace

GraphFor inPrecision(GraphFor graphs, DType type) {
  return [narrow = std::make_shared<NarrowGraphs>(std::move(graphs), type)](int64_t microBatches) {
    return narrow->of(microBatches);
  };
}

}  // namespace weft
