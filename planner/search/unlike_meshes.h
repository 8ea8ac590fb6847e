// Pipelines whose submeshes have meshes of unlike shape and size, made of one whose submeshes are all alike.
//
// Each submesh takes, of the meshes of as many ranks whose blocks were asked about, the one on which its stage is
// shortest within the memory (cut_stages.h). Where that is expected to gain, neighbors trade ranks besides: of two with
// P ranks one gives the other half of its own, so that they have P/2 and 3P/2, and the blocks are cut anew. The trade
// that gains most is taken, then the next among submeshes that have not traded yet, while they gain. Traded submeshes
// fill nodes, or lie within one: ranks that straddle nodes are priced as if they did not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/request.h"
#include "planner/search/block_costs.h"
#include "planner/search/choose_cut.h"

namespace weft {

// A part of the step: what gains less is not worth meshes of its own.
inline constexpr double kLeastGainOfMeshes = 0.002;

class UnlikeMeshes {
 public:
  UnlikeMeshes(const CompileOptions& request, const Machine& machine, BlockCosts& costs, CutChooser& cuts)
      : request_(request), machine_(machine), costs_(costs), cuts_(cuts) {}

  struct Plan {
    std::string meshes;  // CompileOptions::stageMeshes
    StageCut cut;
  };
  // What trades of ranks may make of the expected time of plans on `grid` whose blocks need so much: at most 1. A guess
  // that asks nothing: as if ranks shared everything evenly.
  double mayGain(const SegmentCosts& costs, const StageGrid& grid, const std::vector<PipelineShape>& shapes);
  // The same of the longest block, whatever the others are.
  double mayGainOfLongest(const StageGrid& grid) const;
  // The best beside the plans of `closed`, on `grid`, under one of the shapes; nothing where none is expected to gain
  // enough, and where the user says the meshes.
  std::optional<Plan> beside(const CompileOptions& closed, const StageGrid& grid,
                             const std::vector<PipelineShape>& shapes);

 private:
  // What the blocks need on a mesh.
  struct Choice {
    std::string mesh;
    int64_t ranks = 1;
    SegmentCosts costs;
    std::shared_ptr<const SummedCosts> summed;
  };
  // How many ranks each submesh has, and the cut that is best then.
  struct Sized {
    std::vector<int64_t> ranks;
    StageCut cut;
  };

  static Choice choiceOf(std::string mesh, int64_t ranks, SegmentCosts costs);
  bool mayBeside(const StageGrid& grid) const;
  bool mayTrade(const StageGrid& grid) const;
  Sized alike(const StageGrid& grid, const PipelineShape& shape) const;
  Sized traded(Sized alike, const PipelineShape& shape) const;
  std::vector<std::string> meshesOf(const CompileOptions& closed, int64_t ranks);
  bool add(const CompileOptions& closed, const std::string& mesh, bool asks);
  void addKnown(const CompileOptions& closed, int64_t ranks);
  void addAsked(const CompileOptions& closed, int64_t ranks);
  Sized cutOf(const std::vector<int64_t>& ranks, const PipelineShape& shape) const;
  std::optional<Sized> bestTrade(const Sized& before, int64_t ranks, const PipelineShape& shape) const;
  bool liesWell(int64_t first, int64_t ranks) const;
  bool gains(const StageCut& cut, const StageCut& before) const;
  std::string textOf(const StageCut& cut) const;

  const CompileOptions& request_;
  const Machine& machine_;
  BlockCosts& costs_;
  CutChooser& cuts_;
  std::vector<Choice> choices_;  // of the plans that it is asked about
  int64_t asked_ = 0;
};

}  // namespace weft
