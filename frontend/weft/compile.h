// From a graph to a program: options, optimizers, compile().
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "weft/graph.h"

namespace weft {

namespace optim {

struct Sgd {
  double lr = 0.01;
  double momentum = 0.0;
  bool nesterov = false;
  double weightDecay = 0.0;
};
// Weight decay is added to the gradient (L2).
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.0;
};
// Weight decay shrinks the parameter (decoupled).
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.01;
};

}  // namespace optim

// Any of the optimizers; made from one.
struct Optimizer {
  std::string kind;
  std::vector<std::pair<std::string, double>> settings;
  bool nesterov = false;

  Optimizer(const optim::Sgd& o);    // NOLINT
  Optimizer(const optim::Adam& o);   // NOLINT
  Optimizer(const optim::AdamW& o);  // NOLINT
};

enum class Fill : uint8_t { kDataParallel, kReplicate };

struct CompileOptions {
  // "dp=2,tp=2"; "4" or empty with devices = 4: no named axes, only the line of ranks. With pipeline stages
  // (Graph::stage) the mesh of one stage: each stage has as many ranks of its own.
  std::string mesh;
  // Instead of `mesh`: one for each block of ranks that owns pipeline stages, "dp=2,tp=2;dp=4"; of any shape and size.
  std::string stageMeshes;
  int64_t devices = 1;              // used where `mesh` is empty; with stageMeshes 1 or the ranks of all together
  int64_t micro = 1;                // micro-batches of one step
  int zero = 0;                     // ZeRO level 0..3
  Fill fill = Fill::kDataParallel;  // what strategies and propagation leave open
  // Of pipeline stages: gpipe, 1f1b, interleaved, breadth_first, zb_h1, zb_h2, zb_interleaved, zb_v, v_half, v_min,
  // dualpipe_v (`weft schedule` shows them); "auto": the shortest in simulation that fits in memoryLimit;
  // "table": the one in scheduleTable.
  std::string schedule = "auto";
  std::string scheduleTable;  // one line per rank: "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n" (passes/schedule/table.h)
  int64_t virtualStages = 0;  // stages on each rank; 0: as the schedule has it
  int64_t memoryLimit = 0;    // bytes of one rank; 0 = none
  // Recomputed in backward beside what stands in Graph::recompute scopes: operator names or mnemonics with * and ?,
  // with commas ("gelu,h*.layer_norm"); "full" stands for all; "none": nothing else. "auto": what makes the program fit
  // in memoryLimit in the least time, nothing where it fits without.
  std::string recompute = "auto";
  // Gathered values are gathered again in backward instead of kept; parameters (ZeRO-3) in each call that reads them
  // instead of once per step.
  bool regather = false;
  double clipNorm = 0;           // global gradient norm; 0 = no clipping
  int64_t seed = 0;              // of initial values
  bool gradientOutputs = false;  // outputs "grad.<parameter>", before clipping
  // Layouts by parameter-name pattern ('*' and '?'), the first match counts: {"*.qkv.weight", "[{},{},{tp}]"}. With
  // stageMeshes a text may have one layout for each block: "[{dp},{}];[{},{}]".
  std::vector<std::pair<std::string, std::string>> layouts;
  std::string dumpDir;    // numbered IR files of every state and phase
  std::string decisions;  // a saved record to realise instead of deciding
};

// A compiled program: the plan and what was decided.
struct Program {
  plan::Plan plan;
  const std::string& decisions() const { return plan.decisions(); }
};

// The training step of `loss` (a scalar of the graph). Errors: the graph's first error; what the compiler refuses, with
// the user's source line.
absl::StatusOr<Program> compile(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                const CompileOptions& options = {});
// Only forward: the graph's outputs (and `loss`, if valid), over the parameters of another program.
absl::StatusOr<Program> compileForward(Graph& graph, const Tensor& loss, const CompileOptions& options = {});
// The layouts a program gave its parameters, as CompileOptions::layouts: for another program over the same store.
std::vector<std::pair<std::string, std::string>> parameterLayouts(const Program& program);
// The options under which a forward program of the same graph shares the training program's parameters: its layouts and
// the places of its pipeline stages, one micro-batch, no ZeRO.
CompileOptions forwardOptions(const Program& training, CompileOptions options);
// The logical module as it would be compiled, for `weft compile` and tests.
absl::StatusOr<std::string> logicalModule(Graph& graph, const Tensor& loss, const Optimizer& optimizer,
                                          const CompileOptions& options = {});

}  // namespace weft
