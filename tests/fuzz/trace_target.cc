// Recorded runs, as the profile of a plan of two stages.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/support/staged_plan.h"
#include "tools/analysis/executed_step.h"
#include "tools/analysis/plan_profile.h"
#include "tools/analysis/simulate_plan.h"
#include "tools/analysis/trace_file.h"

namespace weft::fuzz {
namespace {

Outcome run(const std::string& bytes) {
  static const plan::Plan kPlan = testing::stagedPlan({{0, 1, 2}, {0, 1, 2}});
  const MemoryFile file(bytes);
  const absl::StatusOr<tools::Trace> trace = tools::readTrace(file.path(), kPlan.ranks());
  if (!trace.ok()) {
    return Outcome::kRefused;
  }
  tools::executedStep(kPlan, *trace, std::nullopt).IgnoreError();
  tools::executedStep(kPlan, *trace, 1).IgnoreError();
  const absl::StatusOr<tools::PlanProfile> profile = tools::profileOf(kPlan, *trace);
  if (!profile.ok()) {
    return Outcome::kRefused;
  }
  schedule::simulatePlan(kPlan, profile->times).IgnoreError();
  schedule::stageTimes(kPlan, profile->times);
  return Outcome::kAccepted;
}

}  // namespace

Target traceTarget() {
  return {"trace", run, nullptr,
          wordsOf("{|}|[|]|:|,|\"|traceEvents|\"ph\":\"X\"|\"ts\":|\"dur\":|\"tid\":|\"cat\":|step|action|"
                  "kernel|null|1e308|-1|1e400|\"micro-batch\":|FORWARD|BACKWARD")};
}

}  // namespace weft::fuzz
