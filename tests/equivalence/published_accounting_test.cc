// What is published of the arithmetic, the traffic and the memory of a transformer layer, against the program graph and
// the model of the step. Each layer's share is what a program of three layers has more than one of two.
//
//   FLOPs, traffic   Narayanan et al., "Efficient large-scale language model training on GPU clusters using
//   Megatron-LM",
//                    2021
//   activations      Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022
// Bytes of parameters, gradients and states: tests/planner/graph/precision_test.cc.

#include <gtest/gtest.h>

#include <functional>

#include "planner/cost/step_model.h"
#include "planner/derive/derive.h"
#include "planner/derive/micro_batches.h"
#include "planner/graph/flops.h"
#include "planner/step/time_layouts.h"
#include "runtime/base/status.h"
#include "tests/equivalence/published_gpt.h"

namespace weft::testing {
namespace {

constexpr double kHeads = 16;
constexpr double kWidth = 1024;
constexpr double kRows = 4;  // of a micro-batch
constexpr double kMicro = 2;
constexpr double kParts = 8;                            // of tensor parallelism
constexpr double kElements = kRows * kTokens * kWidth;  // of the residual stream

PublishedRun small(bool recomputes) {
  return {0, 16, 1024, 2, 1, 1, 1, 8, 4, 1, 0, recomputes};
}

std::unique_ptr<StepModel> modelOf(const PublishedRun& run) {
  absl::StatusOr<ProgramGraph> graph = graphOf(run);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Derivation> derived = deriveDecisions(*graph, requestOf(run), {});
  EXPECT_TRUE(derived.ok()) << derived.status();
  absl::StatusOr<std::unique_ptr<StepModel>> model =
      StepModel::create(*std::move(graph), derived->decisions, Machine(), {});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

using Count = std::function<double(StepModel& model)>;
double ofOneLayer(PublishedRun run, const Count& count) {
  const double two = count(*modelOf(run));
  ++run.layers;
  return count(*modelOf(run)) - two;
}

// Of all operations of a part of the step for one micro-batch; `again`: of those that recompute.
double sumOf(StepModel& model, RunsIn where, bool again,
             const std::function<double(const AnnotatedStep&, const AnnotatedOp&)>& of) {
  const AnnotatedStep step = withCopies(model.step(), repeatedOps(model.view(), model.record(), model.step()));
  double sum = 0;
  for (const AnnotatedOp& op : step.ops) {
    sum += op.place.where == where && op.repeated == again ? of(step, op) : 0;
  }
  return sum;
}

Count productFlops(RunsIn where, bool again) {
  return [=](StepModel& model) {
    return sumOf(model, where, again, [&](const AnnotatedStep& /*step*/, const AnnotatedOp& op) {
      if (op.kind != AnnotatedOp::Kind::kOperator) {
        return 0.0;
      }
      const Rule rule = *weft::ruleOf(model.view(), op.op);
      const FactorAxes whole(rule.factors().size());
      return isProduct(rule) ? flopsOf(model.view().op(op.op).facts, rule, whole) / kMicro : 0.0;
    });
  };
}

TEST(PublishedAccounting, FlopsOfALayer) {
  const double part = kRows * kTokens * kWidth * kWidth;
  const double forward = 24 * part * (1 + kTokens / (6 * kWidth));
  EXPECT_EQ(ofOneLayer(small(true), productFlops(RunsIn::kForward, false)), forward);
  EXPECT_EQ(ofOneLayer(small(true), productFlops(RunsIn::kBackward, false)), 2 * forward);
  // Recomputation leaves out the last product of the layer: nothing in the backward pass reads what it makes.
  EXPECT_EQ(ofOneLayer(small(true), productFlops(RunsIn::kBackward, true)), forward - 8 * part);
  EXPECT_EQ(ofOneLayer(small(false), productFlops(RunsIn::kBackward, true)), 0);
}

TEST(PublishedAccounting, FlopsOfAStep) {
  const PublishedRun run = small(true);
  const std::unique_ptr<StepModel> model = modelOf(run);
  double all = 0;
  for (const auto& [where, again] :
       {std::pair{RunsIn::kForward, false}, {RunsIn::kBackward, false}, {RunsIn::kBackward, true}}) {
    all += kMicro * productFlops(where, again)(*model);
  }
  const double notAgain = 8 * kMicro * kRows * kTokens * kWidth * kWidth * static_cast<double>(run.layers);
  EXPECT_NEAR(all + notAgain, publishedFlops(run), 1);
}

// Bytes that a rank receives in all_reduces between the ranks of a tensor-parallel group.
Count reducedBytes(RunsIn where, bool again) {
  return [=](StepModel& model) {
    return sumOf(model, where, again, [&](const AnnotatedStep& step, const AnnotatedOp& op) {
      double bytes = 0;
      if (op.kind == AnnotatedOp::Kind::kReshard && timeDim(step.values[op.results[0]].layout) >= 0) {
        const absl::StatusOr<ReshardPlan> path = model.prices().path(step, op);
        if (!path.ok()) {
          ADD_FAILURE() << path.status();
          return bytes;
        }
        for (const ReshardStep& move : path->steps) {
          EXPECT_EQ(move.kind, CollectiveKind::kAllReduce);
          bytes += static_cast<double>(move.bytesReceived);
        }
      }
      return bytes;
    });
  };
}

// Two all_reduces forward and two backward, of which a rank receives 2 (t - 1) / t of the tensor; recomputation repeats
// the first.
TEST(PublishedAccounting, TrafficOfALayer) {
  PublishedRun run = small(true);
  run.tp = run.devices = static_cast<int64_t>(kParts);
  const double bytes = 2 * (kParts - 1) / kParts * 2 * kElements;
  EXPECT_EQ(ofOneLayer(run, reducedBytes(RunsIn::kForward, false)), 2 * bytes);
  EXPECT_EQ(ofOneLayer(run, reducedBytes(RunsIn::kBackward, false)), 2 * bytes);
  EXPECT_EQ(ofOneLayer(run, reducedBytes(RunsIn::kBackward, true)), bytes);
}

double activationBytes(StepModel& model) {
  const absl::StatusOr<StepNeeds> needs = model.needs(model.record());
  EXPECT_TRUE(needs.ok()) << needs.status();
  int64_t bytes = 0;
  for (const StepRegion& region : needs->submeshes[0].regions) {
    bytes += region.memory == plan::ACTIVATION ? region.bytes : 0;
  }
  return static_cast<double>(bytes);
}

// s b h (34 + 5 a s / h), less what is not kept here: masks of dropout are drawn again from their counters (1 byte of
// each of two residual branches, 1 of the scores). Layer norms keep a mean and a deviation of each token besides.
TEST(PublishedAccounting, ActivationsOfALayer) {
  const double scores = kHeads * kTokens / kWidth;
  const double statistics = 4 * 4 * kRows * kTokens;
  EXPECT_EQ(ofOneLayer(small(false), activationBytes), kElements * (34 - 2 + (5 - 1) * scores) + statistics);
  EXPECT_EQ(ofOneLayer(small(true), activationBytes), 2 * kElements) << "recomputed from what it reads";
  PublishedRun parts = small(false);
  parts.tp = parts.devices = static_cast<int64_t>(kParts);
  EXPECT_EQ(ofOneLayer(parts, activationBytes),
            kElements * (10 - 2 + 24 / kParts + (5 - 1) * scores / kParts) + statistics);
}

// A stage of 1F1B keeps as many micro-batches as there are stages from it to the last.
TEST(PublishedAccounting, MicroBatchesInFlight) {
  PublishedRun run = small(true);
  run.layers = run.pp = run.devices = 4;
  run.batch = 32;
  const std::unique_ptr<StepModel> model = modelOf(run);
  const absl::StatusOr<StepNeeds> needs = model->needs(model->record());
  ASSERT_TRUE(needs.ok()) << needs.status();
  ASSERT_EQ(needs->submeshes.size(), 4);
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(needs->submeshes[stage].slotsOf(stage), 4 - stage);
  }
}

}  // namespace
}  // namespace weft::testing
