// From a graph to a program: compile(). Its options are in planner/request.h, the optimizers in planner/optimizer.h.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/advise/advise_memory.h"
#include "planner/request.h"
#include "runtime/plan/plan.pb.h"
#include "weft/graph.h"

namespace weft {

// What compile() names its programs.
inline constexpr char kTrainingProgram[] = "train";

// A compiled program: the plan and what was decided.
struct Program {
  plan::Plan plan;
  // What is no error but worth a line: options that have no effect on this program.
  std::vector<std::string> notes = {};
  int compilations = 1;                  // more than one where the planner had predicted the memory too low
  std::vector<std::string> states = {};  // of the graph (Graph::state), without those of the optimizer
  const std::string& decisions() const { return plan.decisions(); }
};

// The training step of `loss` (a scalar of the graph). Errors: the graph's first error; options that make no sense
// (planner/check_request.h); what the compiler refuses, with the user's source line.
absl::StatusOr<Program> compile(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                const CompileOptions& options = {});
// What would lower the memory of that program, by how much and at what price, predicted. Nothing is compiled. Errors:
// as compile().
absl::StatusOr<MemoryAdvice> advise(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                    const CompileOptions& options = {});
// Only forward: the graph's outputs (and `loss`, if valid), over the parameters of another program.
absl::StatusOr<Program> compileForward(Graph& graph, const Tensor& loss, const CompileOptions& options = {});
// The layouts a program gave its parameters and the states of its graph, as CompileOptions::layouts: for another
// program over the same store.
std::vector<std::pair<std::string, std::string>> parameterLayouts(const Program& program);
// The options under which a forward program of the same model shares the training program's parameters and states,
// whatever its batch: its layouts and the places of its pipeline stages, one micro-batch, no ZeRO.
CompileOptions forwardOptions(const Program& training, CompileOptions options);
// The logical module as it would be compiled, for `weft compile` and tests.
absl::StatusOr<std::string> logicalModule(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                          const CompileOptions& options = {});

}  // namespace weft
