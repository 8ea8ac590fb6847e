// The decisions record: everything the compiler chose or was told about one program.
//
// `decide` writes it; everything after is `realize(logical, decisions)`, pure and deterministic. The text form is JSON,
// so it can be read, compared, saved, edited and given back (CompileOptions::decisions).
//
// Operators are named by their number (nn.id) in the logical module with gradient and update; axes are space axes only:
// that a factor carries the batch, and so the micro-batches of a step, is the `batch` entry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/layout.h"
#include "ir/layout/stage_meshes.h"
#include "planner/machine/picoseconds.h"
#include "planner/offload.h"
#include "runtime/base/dtype.h"

namespace weft {

// What recomputing an operator in the backward pass saves and costs. Both are 0 where the user asked for it.
struct RecomputePrice {
  int64_t bytes = 0;     // not kept of one micro-batch, on one rank
  Picoseconds time = 0;  // of running it again, for each micro-batch
};

// Where an operator runs within a step (see docs/overview.md, micro-batches).
enum class RunsIn : uint8_t { kPrologue, kForward, kBackward, kUpdate };
std::string runsInName(RunsIn where);
std::optional<RunsIn> runsInNamed(const std::string& name);

// When a value that is read in another layout than its own is gathered: a parameter (planner/derive/gathers.h), or what
// an operator makes.
enum class GatherPolicy : uint8_t {
  kNone,         // nothing is to be gathered; of what an operator makes: once, for forward and backward
  kOncePerStep,  // before the first micro-batch, kept until the last has been through
  kEachCall,     // in every forward and backward call that reads it
};

std::string gatherPolicyName(GatherPolicy policy);  // "none", "once_per_step", "each_call"

struct OperatorDecision {
  int64_t id = 0;
  std::string label;  // for people
  RunsIn runsIn = RunsIn::kForward;
  int64_t stage = 0;       // pipeline stage
  bool recompute = false;  // backward computes the results again instead of reading kept ones
  RecomputePrice recomputePrice;
  GatherPolicy gather = GatherPolicy::kNone;  // of its results; never kOncePerStep
  std::string batch;                          // factor that carries the batch; "" none
  bool perMicroBatch = false;                 // is that factor cut into the micro-batches of the step?
  std::map<std::string, AxisList> axes;       // factor name to space axes, major first; absent = not split
  std::map<unsigned, Layout> results;         // results whose layout was asked for (out strategy)
  std::string origin;                         // "user", "search", "forward operator 12", "operand of 7", "default"
};

// A reshard or mask in the forward pass whose results the backward pass reads. Without an entry it is repeated where
// the operator is whose result it changes, else kept. Or a gather in the backward pass: repeated for the gradients of
// weights where these run apart; without an entry what it makes is kept for them.
struct ReshardDecision {
  int64_t id = -1;     // the operator whose result it changes, -1: an argument
  unsigned index = 0;  // which result, or which argument
  std::string how;     // the layout it makes; of a mask "mask" and its dimension
  int64_t stage = 0;   // where it runs
  std::string label;   // for people
  bool recompute = false;
  RecomputePrice recomputePrice;
};

struct ArgumentDecision {
  std::string name;
  Layout layout;  // with pads
  GatherPolicy gather = GatherPolicy::kNone;
  std::string origin;
  int64_t stage = 0;                      // that owns it, on whose mesh `layout` is read
  std::vector<int64_t> laterStages = {};  // of a parameter: whose forward pass reads it, too; ascending
  // Where submeshes have different meshes: the layouts on the others that read it, by number of the mesh.
  std::map<int64_t, Layout> elsewhere = {};
  // The ZeRO level of a parameter, where it is not that of the record (ZeroLevels).
  std::optional<int64_t> zero = std::nullopt;

  // On the mesh of this number.
  const Layout& layoutOn(int64_t mesh) const;
};

// A change of the program itself: operator `id` is replaced by its expansion, because layouts ask for it or because it
// exists only to be expanded; or what its operand `operand` reads is computed before the micro-batches, in the
// prologue; or the terms of the sum that it ends are added group by group (planner/graph/sums.h).
struct Rewrite {
  enum Kind : uint8_t { kExpand, kPrologue, kRegroup };
  Kind kind = kExpand;
  int64_t id = 0;
  unsigned operand = 0;
  std::vector<std::vector<unsigned>> groups = {};  // the terms, by number; each once
  std::string of = "";                             // kind of the operator that is replaced; for people
};

// How the pipeline stages run; submeshes own them. Without stages `submeshes` has one entry.
struct ScheduleDecision {
  std::string kind = "1f1b";
  int64_t virtualStages = 1;             // stages of each submesh
  std::vector<int64_t> submeshes = {0};  // submesh of each stage
  std::string table = "";                // of kind "table": the user's own, as CSV (planner/schedule/table.h)
  std::string considered = "";           // JSON: what schedule = "auto" chose among; for people
};

// The 16-bit types that a program may be priced with: "bf16" or "f16"; nothing for another name.
std::optional<DType> parsePrecision(const std::string& name);

// What the planner expects of a record that it searched for.
struct Prediction {
  std::vector<int64_t> peakBytes;  // of a rank of each submesh
  Picoseconds time = 0;            // of a step
  Picoseconds bound = 0;           // that no plan on as many ranks is below (planner/cost/bound.h); 0: not known

  int64_t most() const;  // of the rank that needs most
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

struct Decisions {
  Mesh mesh;         // with the time axis; the first submesh's where they differ
  int64_t zero = 0;  // ZeRO level, but for the parameters that have their own
  ScheduleDecision schedule;
  std::vector<Mesh> stageMeshes;            // of each submesh, where they differ; else empty
  int64_t stripes = 0;                      // of the batch, where meshes differ (docs/sharding.md); else 0
  std::vector<Rewrite> rewrites;            // in the order in which they are made
  std::vector<ArgumentDecision> arguments;  // in the order of @step
  std::vector<OperatorDecision> operators;  // in the order of @step
  std::vector<ReshardDecision> reshards;    // whose recomputation differs from that of their producer
  std::string recomputeSummary = "";        // JSON: what recompute = "auto" came to; for people
  std::string prices = "";                  // JSON: what other plans cost (planner/explain/); for people
  std::vector<std::string> conflicts;       // what propagation had to choose between, for people
  std::vector<std::string> notes;           // axes that split nothing, splits that were dropped; for people
  std::optional<Prediction> prediction;     // nothing where nothing was searched
  // The 16-bit type that the program was priced with (planner/graph/precision.h); nothing: as it is.
  std::optional<DType> precision = std::nullopt;
  bool overlap = false;              // collectives run beside computation (planner/cost/overlap.h)
  Offload offload = Offload::kNone;  // what lies in the host's memory; never kAuto
  // Bytes of the results of one bucket of gathers in each call, at most; 0: those of the largest (step/buckets.h).
  int64_t gatherBucket = 0;

  const OperatorDecision* find(int64_t id) const;
  StageMeshes meshes() const;
};

// Axes over which the batch is split when nobody says otherwise, and ZeRO divides: the axis named dp, or the whole line
// where no axis has a name.
AxisList dataParallelAxes(const Mesh& mesh);
// Elements of a dimension that a shard must have for a pad of ZeRO to be worth its while.
inline constexpr int64_t kSmallestZeroShard = 16;

// What the record says of each operator, by its number.
std::map<int64_t, const OperatorDecision*> decisionsById(const Decisions& decisions);

std::string printDecisions(const Decisions& decisions);
// Errors name the entry and what was expected.
absl::StatusOr<Decisions> parseDecisions(const std::string& text);

}  // namespace weft
