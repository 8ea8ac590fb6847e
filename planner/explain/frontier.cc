#include "planner/explain/frontier.h"

#include <utility>

#include "planner/check_request.h"
#include "planner/explain/plan_summary.h"

namespace weft {
namespace {

constexpr int64_t kSteps = 10;  // of the ladder, down to nothing

FrontierPoint pointOf(int64_t limit, const Attempt& attempt) {
  return {limit, attempt.peakBytes, inSeconds(attempt.time), planText(attempt.decisions)};
}

}  // namespace

void addPoint(FrontierPoint point, std::vector<FrontierPoint>& points) {
  while (points.size() > 1 && points.back().seconds >= point.seconds) {
    points.pop_back();
  }
  points.push_back(std::move(point));
}

std::vector<FrontierPoint> frontierOf(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan,
                                      SearchMemory& memory) {
  std::vector<FrontierPoint> points = {pointOf(memoryLimitOf(request).value_or(0), plan.attempt)};
  const int64_t most = plan.attempt.peakBytes;
  for (int64_t step = kSteps - 1; step > 0; --step) {
    CompileOptions changed = request;
    changed.memoryLimit = most / kSteps * step;
    if (points.back().peakBytes <= changed.memoryLimit) {
      continue;
    }
    const absl::StatusOr<ClosedRequest> closed = closeRequest(graphs, changed, {}, &memory);
    if (!closed.ok() || !closed->attempt.fits) {
      break;
    }
    addPoint(pointOf(changed.memoryLimit, closed->attempt), points);
  }
  return points;
}

}  // namespace weft
