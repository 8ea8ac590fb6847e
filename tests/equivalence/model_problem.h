// What the planner is asked about a model, as `weft plan` asks it, and the plans that one writes by hand for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/search/plan.h"
#include "tests/equivalence/known_models.h"

namespace weft::testing {

// A program with its gradients and update; that of a model with AdamW.
class ModelProblem {
 public:
  static absl::StatusOr<std::unique_ptr<ModelProblem>> create(const KnownModel& model, const ModelWords& words = {});
  // That of a logical module, as text.
  static absl::StatusOr<std::unique_ptr<ModelProblem>> parse(const std::string& module, const std::string& name);
  ~ModelProblem();

  const GraphFor& graphs() const;
  // For one micro-batch, or for as many as given where operators depend on them.
  absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph(int64_t micro = 1) const { return graphs()(micro); }
  // Names, in the order in which the model makes them.
  const std::vector<std::string>& parameters() const { return parameters_; }
  // From the calls of the graph builder to the program graph.
  double seconds() const { return seconds_; }

  // What is predicted of a request that leaves nothing open; where it has stages of parameters, these count and not
  // those of the model.
  absl::StatusOr<Attempt> predict(const CompileOptions& closed) const;

 private:
  struct Module;
  ModelProblem();

  std::unique_ptr<Module> module_;
  std::vector<std::string> parameters_;
  double seconds_ = 0;
};

// Bytes: so much of what a plan needs, beside the scratch of its kernels, which no plan of a small program has less of.
int64_t withinPercent(const Attempt& attempt, int64_t percent);

// The bound of plans of a program that divide ranks and batch as this one does, in as much memory as it needs.
absl::StatusOr<Picoseconds> boundOfPlansLike(const ProgramGraph& program, const Attempt& attempt,
                                             const std::string& machine);

// "4 x dp=2,tp=8, virtual 2, micro 64, zero 1, 1f1b, recomputed 12 of 60 operators".
std::string planText(const Attempt& attempt);

}  // namespace weft::testing
