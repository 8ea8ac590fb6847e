// The request: everything a user asks of the compiler, as one typed value, with its defaults. The C++ API fills it
// (weft/compile.h); for a module in a file passes/logical/request_attributes.h reads it from the attributes.
//
// checkRequest (planner/check_request.h) says whether it makes sense.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/freedoms.h"
#include "planner/offload.h"
#include "planner/optimizer.h"
#include "planner/zero_levels.h"

namespace weft {

// The planner takes the level of ZeRO with which the program is fastest within the memory limit, and for level 3
// whether parameters are gathered again.
inline constexpr int kFindZero = -1;

enum class Fill : uint8_t { kDataParallel, kReplicate };

// How much is left to the planner.
//   kSemi     the user's words spread at least cost (planner/derive/); what nothing says is not split, but the batch
//   kLayouts  mesh and stages are the user's, every split of every operator over the mesh is considered
//   kAuto     what the user leaves open is searched for: stages, mesh, micro-batches, layouts, ZeRO (planner/search/)
// What the user says is kept in each.
enum class Mode : uint8_t { kSemi, kLayouts, kAuto };
std::string modeName(Mode mode);  // "semi", "layouts", "auto"
// Also under the names of MindSpore's modes of search, and "propagate" for kSemi. Error: an unknown name, with the
// nearest.
absl::StatusOr<Mode> parseMode(const std::string& name);

struct CompileOptions {
  Mode mode = Mode::kSemi;
  // "dp=2,tp=2"; "4" or empty with devices = 4: no named axes, only the line of ranks. With pipeline stages
  // (Graph::stage) the mesh of one stage: each stage has as many ranks of its own.
  // Sizes may be left to the planner: "dp=?,tp=?" are the sizes, `devices` together, with which the program takes the
  // least time within the memory limit.
  std::string mesh;
  // Instead of `mesh`: one for each submesh that owns pipeline stages, "dp=2,tp=2;dp=4"; of any shape and size.
  std::string stageMeshes;
  // Used where `mesh` is empty. Beside a mesh 1 or its ranks; with stageMeshes 1 or the ranks of all together. In mode
  // kAuto the ranks of all stages together; 1 beside a mesh: those of the mesh.
  int64_t devices = 1;
  // What the program runs on, and all costs come from: the name of a machine that comes with Weft ("a100-80g"), or the
  // text of a machine file (planner/machine/machine.h, `--machine NAME|FILE`); empty: CPU ranks that share one host.
  std::string machine;
  // Micro-batches of one step. Nothing: found in mode kAuto, else 1.
  std::optional<int64_t> micro;
  // ZeRO level 0..3, or kFindZero. Nothing: found in mode kAuto, else 0.
  std::optional<int> zero;
  // ZeRO levels by parameter-name pattern ('*' and '?'), the first match counts; the others have `zero`:
  // {"h*.fc.*", 3}. A pattern that no parameter of a training program matches is an error.
  ZeroPatterns zeroOf;
  Fill fill = Fill::kDataParallel;  // what strategies and propagation leave open
  // The pipeline schedule: gpipe, 1f1b, interleaved, breadth_first, zb_h1, zb_h2, zb_interleaved, zb_v, v_half, v_min,
  // dualpipe_v (`weft schedule` shows them); "auto": the shortest in simulation that fits in memoryLimit;
  // "table": the one in scheduleTable.
  std::string schedule = "auto";
  std::string scheduleTable;  // one line per rank: "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n" (planner/schedule/table.h)
  int64_t virtualStages = 0;  // stages on each rank; 0: as the schedule has it
  int64_t memoryLimit = 0;    // bytes of one rank; 0 = the memory of the machine, if its file says one
  // Recomputed in backward beside what stands in Graph::recompute scopes: operator names or mnemonics with * and ?,
  // with commas ("gelu,h*.layer_norm"); "full" stands for all, layer by layer; "none": nothing else. "auto": what makes
  // the program fit in memoryLimit in the least time, nothing where it fits without.
  std::string recompute = "auto";
  // Gathered values are gathered again in backward instead of kept; parameters (ZeRO-3) in each call that reads them
  // instead of once per step. In mode kAuto false leaves it open at level 3 (Freedom::kGathers).
  bool regather = false;
  // Most bytes of the results of one bucket of parameters that are gathered in each call; 0: those of the largest
  // parameter, in mode kAuto also more where that is shorter (Freedom::kGathers).
  int64_t gatherBucket = 0;
  // Collectives run beside computation where the machine has two queues (planner/cost/overlap.h). Of plans that are not
  // compiled: those that run have one queue.
  bool overlap = false;
  // What lies in the host's memory on a machine that says its host_bandwidth. Of plans that are not compiled, too:
  // ranks that run have one memory.
  Offload offload = Offload::kNone;
  double clipNorm = 0;           // global gradient norm; 0 = no clipping
  int64_t seed = 0;              // of initial values
  bool gradientOutputs = false;  // outputs "grad.<parameter>", before clipping
  // Layouts by parameter-name pattern ('*' and '?'), the first match counts: {"*.qkv.weight", "[{},{},{tp}]"}. With
  // stageMeshes a text may have one layout for each submesh: "[{dp},{}];[{},{}]". A pattern that no parameter of a
  // training program matches is an error.
  std::vector<std::pair<std::string, std::string>> layouts;
  // Pipeline stages of parameters, by name, for operators on which nobody names one: what works on a parameter runs on
  // the first of its stages, in ascending order, that is no earlier than what else it reads; on no earlier one, if
  // there is none such. A program that names stage 0 alone names none.
  std::map<std::string, std::vector<int64_t>> stages;
  int64_t maxStages = 0;  // most pipeline stages that mode kAuto considers; 0: as many as there are devices
  Freedoms without;       // what mode kAuto may not decide (freedoms.h)
  bool may(Freedom freedom) const { return without.count(freedom) == 0; }
  // In mode kAuto: the best plan within so many departures from the user's own words (planner/search/departures.h).
  int64_t departures = 0;
  // In mode kAuto: a saved record that the search begins from (planner/search/recorded_plan.h). The answer is no worse
  // where the record is what the request asks for.
  std::string from;
  std::string dumpDir;    // numbered IR files of every state and phase
  std::string decisions;  // a saved record to realize instead of deciding

  int64_t microBatches() const { return micro.value_or(1); }
  // Of what no pattern of zeroOf matches.
  int zeroLevel() const { return zero.value_or(mode == Mode::kAuto ? kFindZero : 0); }
  // The most that any parameter may have.
  int mostZeroLevel() const;
};

struct Request {
  CompileOptions options;
  std::optional<Optimizer> optimizer;  // none: a forward program
};

// What a request is compared with: the program as the user wrote it, for one device.
struct ProgramOutline {
  int64_t stages = 1;  // pipeline stages that operators name
  int64_t rows = 0;    // of the smallest batch of an input; 0: no input has one
  std::vector<std::string> parameters;
};

// The names and patterns that the option `recompute` lists; "full" is "*". None for "auto" and "none".
std::vector<std::string> recomputePatterns(const std::string& recompute);

}  // namespace weft
