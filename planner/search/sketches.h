// Plans in the order of what is expected of them, from the needs of their blocks: the sketches of which the search
// predicts the best in full.
//
// A sketch is a mesh, a number of submeshes and of stages on each, a number of micro-batches, a level of ZeRO and a
// kind of schedule. There are thousands; few are asked about. Each begins with a guess that is hardly too high, and
// what has the least is made exact, until that which is exact has the least:
//   1. guessed   from relatives whose blocks were asked about (block_costs.h), at the best level of ZeRO, under a
//                schedule that idles and holds as little as any; once that has the least, under those that there are
//   2. level     a sketch for each level of ZeRO, from one whose ranks hold as many rows on a mesh with the same axes
//                beside the batch: per micro-batch they need the same. Of long programs the levels beyond the first,
//                which save memory at a price of time, only where memory is short
//   3. made      what its own blocks need, cut into stages; beside a pipeline one whose submeshes have unlike meshes
//                where that is expected to gain (unlike_meshes.h)
// Where memory is short, splits that save memory (segment_costs.h) are asked about first, and in the end held against
// those that do not.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory_limits.h"
#include "planner/request.h"
#include "planner/search/block_costs.h"
#include "planner/search/choose_cut.h"
#include "planner/search/plan_space.h"
#include "planner/search/unlike_meshes.h"

namespace weft {

inline constexpr double kNoneTooLong = std::numeric_limits<double>::infinity();

struct Sketch {
  CompileOptions request;  // closed but for what is chosen when it is predicted
  StageGrid grid;          // without a mesh where the request has one for each submesh
  StageCut cut;
  // Of long programs: the price of memory with which its splits are decided. Else the prediction finds one.
  std::optional<double> bytePrice;
};

class Sketches {
 public:
  // Of `request`, in mode kAuto. Errors: what is given cannot be together; the first reason why no plan can be.
  static absl::StatusOr<std::unique_ptr<Sketches>> create(const GraphFor& graphs, const CompileOptions& request,
                                                          const SearchKnowledge& known);

  // The next by the time that is expected of it, if that is below `most`, in picoseconds; nothing once all were given
  // or none is. What is left is given to those who ask with more.
  std::optional<Sketch> next(double most = kNoneTooLong);

  absl::StatusOr<const BlockProgram*> programFor(int64_t microBatches) { return costs_.programFor(microBatches); }
  // Is its program a long one (block_program.h)?
  bool isLong(const Sketch& sketch);
  int64_t ticks() const { return costs_.asked(); }  // how often blocks were asked about
  size_t count() const { return made_; }
  size_t refused() const { return refused_; }
  const absl::Status& refusal() const { return refusal_; }  // the first

 private:
  enum class Known : uint8_t { kGuessed, kLevel, kMade };
  // What the submeshes of a grid run on: the kinds of devices that there are, by their numbers in BlockCosts, on the
  // meshes that the user gives each of them.
  struct Kinds {
    std::vector<int64_t> numbers = {0};
    std::vector<std::string> meshes = {};  // of each number; empty where all submeshes have that of the sketch
    std::vector<int64_t> ofSubmesh = {};   // indices into `numbers`; empty where all submeshes are alike
    std::vector<int64_t> limits = {};      // of bytes, of each number; empty where devices are alike
  };
  // The words of a sketch on one of the meshes that the user gives.
  struct OnMesh {
    CompileOptions closed;
    int64_t parts = 1;
  };
  struct Entry {
    Sketch sketch;
    Known known = Known::kGuessed;
    int64_t parts = 1;  // of the batch; ranks that share a state under ZeRO
    Kinds kinds = {};
    std::vector<OnMesh> onMeshes = {};  // of kinds with meshes of their own
    double expected = 0;
    size_t order = 0;
    bool isPricedAlone = false;  // known with splits that save memory alone
    double mayGain = 1;          // what unlike meshes may make of its time, until it is made

    const CompileOptions& closedOn(size_t kind) const {
      return onMeshes.empty() ? sketch.request : onMeshes[kind].closed;
    }
    int64_t partsOn(size_t kind) const { return onMeshes.empty() ? parts : onMeshes[kind].parts; }
    // The queue gives the largest first.
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tuple(a.expected, a.sketch.cut.peakBytes, a.order) >
             std::tuple(b.expected, b.sketch.cut.peakBytes, b.order);
    }
  };
  Sketches(const GraphFor& graphs, const CompileOptions& request, const MemoryLimits& limits, const Machine& machine,
           const SearchKnowledge& known)
      : request_(request),
        limits_(limits),
        limit_(limits.least()),
        machine_(machine),
        shapes_(known.before.shapes),
        costs_(graphs, request, machine, known) {}

  absl::Status begin();
  void askFirst(const std::vector<Entry>& group);
  // Of its ranks of one of its kinds.
  static BlockAsk askOf(const Entry& entry, double bytePrice, size_t kind = 0);
  absl::StatusOr<Kinds> kindsOf(const StageGrid& grid, bool areStages);
  std::vector<OnMesh> onMeshes(const CompileOptions& closed, const Kinds& kinds) const;
  SubmeshCosts onKinds(const Entry& entry, std::vector<SegmentCosts> costs) const;
  // Of all of its kinds. Error: it cannot be.
  absl::StatusOr<SubmeshCosts> costsOf(const Entry& entry, double bytePrice);
  std::vector<SubmeshCosts> alike(const Entry& entry);
  bool isKnown(const Entry& entry, BlockCosts::Priced priced);

  void push(Entry entry);
  void refuse(const absl::Status& status);
  bool isNew(const Sketch& sketch);

  void guess(Entry& entry, const std::vector<LoosePipeline>& pipelines);
  void refine(Entry entry);
  bool askAlike(const Entry& entry);
  absl::StatusOr<SubmeshCosts> costsAt(const Entry& entry, const CompileOptions& level, SubmeshCosts costs,
                                       int from) const;
  std::vector<Entry> atLevels(const Entry& entry);
  void make(Entry entry);
  void pushUnlike(const Entry& entry, const std::vector<PipelineShape>& shapes);
  std::vector<PricedBlocks> variantsOf(const Entry& entry);
  std::vector<PipelineShape> shapesOf(const Entry& entry);

  const CompileOptions& request_;
  MemoryLimits limits_;
  int64_t limit_;  // of all ranks, in the mean
  Machine machine_;
  KnownShapes& shapes_;
  BlockCosts costs_;
  bool trains_ = true;
  std::optional<CutChooser> cuts_;      // once the program is known
  std::optional<UnlikeMeshes> unlike_;  // likewise, where all devices are alike
  std::priority_queue<Entry> open_;
  using Figures = std::tuple<Picoseconds, int64_t, std::vector<int>, int64_t, int64_t>;
  std::vector<Figures> given_;
  size_t made_ = 0;
  size_t refused_ = 0;
  absl::Status refusal_;
};

}  // namespace weft
