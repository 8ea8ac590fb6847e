// What plans take, asked once each: predictions of closed requests, kept for the searches to come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "planner/search/choose_open.h"
#include "planner/search/search_memory.h"
#include "planner/search/sketches.h"

namespace weft {

class PlanPredictions {
 public:
  // All outlive it.
  PlanPredictions(Sketches& sketches, const Predict& predict, const SearchKnowledge& known)
      : sketches_(sketches), predict_(predict), known_(known) {}

  // How many were asked about, but for what was known from before.
  int64_t asked() const { return asked_; }

  // Of a sketch as it stands, on its stages; `useless`: as Predict.
  absl::StatusOr<ClosedRequest> of(const Sketch& sketch, Picoseconds useless);
  // Of a plan on other stages of its program, which `stages` are of.
  absl::StatusOr<ClosedRequest> onStages(const ClosedRequest& plan, const BlockProgram& program,
                                         std::vector<int> stages, Picoseconds useless);
  // Of a plan that was chosen, on its stages and with other words.
  absl::StatusOr<Attempt> ofChanged(const std::shared_ptr<const ProgramGraph>& staged, const CompileOptions& closed,
                                    std::optional<double> bytePrice, Picoseconds useless);

 private:
  // Of the question's program as it is, or on stages of that as `program`.
  const absl::StatusOr<ClosedRequest>& ask(SearchQuestion question, std::optional<double> bytePrice,
                                           const BlockProgram* program);

  Sketches& sketches_;
  const Predict& predict_;
  SearchKnowledge known_;
  int64_t asked_ = 0;
};

}  // namespace weft
