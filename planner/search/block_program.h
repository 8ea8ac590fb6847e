// A program cut into blocks, which the search puts on stages, and what each block needs.
//
// Blocks are the segments that repeat (planner/graph/segments.h), and of the others what lies between one operator that
// reads a parameter and the next; where the user names stages, these are the blocks. Of a long row of repeated
// segments a few are asked about (planner/graph/shorten.h): the others need what the one does that stands for them,
// and stages of the user that are whole segments what these need together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/derive/placement.h"
#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/segment_costs.h"

namespace weft {

// The program for so many micro-batches of a step, on which the alternatives of operators may depend. Error: an
// operator refuses the number.
using GraphFor = std::function<absl::StatusOr<std::shared_ptr<const ProgramGraph>>(int64_t microBatches)>;

// Programs of more operators take long to predict.
inline constexpr size_t kOperatorsOfLong = 2000;
// Programs of no more are predicted so quickly that each operator may be tried.
inline constexpr size_t kOperatorsOfTiny = 256;
inline bool isTiny(const ProgramGraph& graph) {
  return graph.operators.size() <= kOperatorsOfTiny;
}

// Of an operator that works on no parameter: it runs where its readers do.
inline constexpr int kNoStage = -1;

class BlockProgram {
 public:
  // `request`: what the user asks for; what it leaves open counts for nothing here. Errors: stages that cannot be.
  static absl::StatusOr<BlockProgram> create(std::shared_ptr<const ProgramGraph> graph, const CompileOptions& request) {
    return create(std::move(graph), request, Grain::kSegments);
  }
  // The same program in more blocks: each operator that reads a parameter begins one, also within a repeated segment.
  absl::StatusOr<BlockProgram> finer(const CompileOptions& request) const {
    return create(graph_, request, Grain::kParameters);
  }

  const ProgramGraph& graph() const { return *graph_; }
  const std::shared_ptr<const ProgramGraph>& sharedGraph() const { return graph_; }
  int blocks() const { return blocks_; }
  // Of each operator, in their order; kNoStage of what works on no parameter and goes where its readers are. Where the
  // stages are the user's: empty.
  const std::vector<int>& blockOf() const { return of_; }
  bool areStages() const { return areStages_; }  // the user's
  bool isShort() const;                          // are some blocks known from others?
  bool isLong() const;                           // does it take long to predict all of it?

  // The stage of each operator, or kNoStage; `first`: of each stage its first block. Empty of one stage, and where the
  // stages are the user's.
  std::vector<int> stagesOf(const std::vector<int>& first) const;
  // The program on such stages, or on those with these first blocks. Where there are none: as it is.
  ProgramGraph withStages(const std::vector<int>& stages) const;
  ProgramGraph onStages(const std::vector<int>& first) const { return withStages(stagesOf(first)); }
  // The same on the stages of forward operators by their numbers, which need not begin with blocks.
  ProgramGraph onStagesOf(const std::map<int64_t, int64_t>& stageOf) const;

  // These first blocks of stages as blocks of `finer`, the same program in more; empty where one of them begins within
  // a block of those.
  std::vector<int> firstIn(const BlockProgram& finer, const std::vector<int>& first) const;

  // What each block needs, of a request that leaves nothing open; `uncut`: what the program without stages needs, as
  // one. Errors: as segmentCosts.
  absl::StatusOr<SegmentCosts> costs(const CompileOptions& closed, bool uncut, double bytePrice,
                                     PlanningMemo& memo) const;

 private:
  // What begins a block: a segment that repeats, or else whatever reads a parameter; or that in any case.
  enum class Grain : uint8_t { kSegments, kParameters };
  static absl::StatusOr<BlockProgram> create(std::shared_ptr<const ProgramGraph> graph, const CompileOptions& request,
                                             Grain grain);
  // Of a graph that names no stages.
  static BlockProgram cut(std::shared_ptr<const ProgramGraph> graph, const CompileOptions& request, Grain grain);
  static BlockProgram ofUserStages(std::shared_ptr<const ProgramGraph> graph, const CompileOptions& request,
                                   const Stages& stages);
  void add(const std::vector<SegmentCost>& staged, size_t b, std::vector<SegmentCost>& made) const;

  std::shared_ptr<const ProgramGraph> graph_;
  std::vector<int> of_;  // blockOf()
  int blocks_ = 1;
  bool areStages_ = false;
  ProgramGraph asked_;          // what is asked about, without stages
  ProgramGraph staged_;         // the same, each of its blocks a stage
  std::vector<int> standsFor_;  // of each block: the stage of staged_ that needs as much
  std::vector<int> stageOf_;    // of each of these blocks, where stages are the user's: the one that it is part of
  std::vector<bool> gone_;      // of each block: is it left out of asked_?
};

}  // namespace weft
