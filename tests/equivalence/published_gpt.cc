#include "tests/equivalence/published_gpt.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "planner/graph/precision.h"
#include "runtime/base/status.h"
#include "weft/weft.h"

namespace weft::testing {
namespace {

constexpr char kWhole[] = "[{dp},{},{}]";  // the residual stream: every rank of a tensor-parallel group has it

class Model {
 public:
  Model(Graph& g, const PublishedRun& run, int64_t stages) : g_(g), run_(run), stages_(stages) {}

  Tensor loss() {
    const Tensor tokens = g_.input("x", {run_.batch, kTokens}, kI32);
    const Tensor labels = g_.input("y", {run_.batch, kTokens}, kI32);
    Tensor x = add(embedding(weight("wte", {kVocabulary, run_.width}, "[{tp},{}]"), tokens),
                   g_.parameter("wpe", {kTokens, run_.width}));
    for (int64_t layer = 0; layer < run_.layers; ++layer) {
      const int64_t stage = stageOf(layer);
      const Scope on = g_.stage(static_cast<int>(stage));
      std::optional<Scope> again;
      if (run_.recomputes) {
        again.emplace(g_.recompute());
      }
      x = constrain(block(constrain(x, kWhole), absl::StrCat("h", layer)), kWhole);
      // Each rank of a tensor-parallel group sends a part of what they all have; the receivers gather it.
      if (layer + 1 < run_.layers && stage != stageOf(layer + 1)) {
        x = constrain(x, "[{dp},{tp},{}]");
      }
    }
    const Tensor logits = matmul(norm(x, "lnf"), weight("head", {run_.width, kVocabulary}, "[{},{tp}]"));
    return mean(softmaxCrossEntropy(logits, labels));
  }

 private:
  int64_t stageOf(int64_t layer) const { return layer * stages_ / run_.layers; }

  Tensor weight(const std::string& name, const Shape& shape, const std::string& layout) const {
    return g_.parameter(name, shape, Init::zeros(), {.fileShape = {}, .layout = run_.tp > 1 ? layout : ""});
  }

  Tensor norm(const Tensor& x, const std::string& name) const {
    return layerNorm(x, g_.parameter(name + ".weight", {run_.width}), g_.parameter(name + ".bias", {run_.width}));
  }

  Tensor block(const Tensor& x, const std::string& name) const {
    const int64_t d = run_.width / run_.heads;
    const Tensor read = norm(x, name + ".ln1");
    const auto heads = [&](const std::string& which) {
      return einsum("btc,chd->bhtd", read, weight(name + which, {run_.width, run_.heads, d}, "[{},{tp},{}]"));
    };
    const Tensor scores = einsum("bhtd,bhsd->bhts", heads(".q"), heads(".k"));
    const Tensor mixed = einsum("bhts,bhsd->bhtd", dropout(softmax(scores), 0.1), heads(".v"));
    const Tensor y =
        add(x, einsum("bhtd,hdc->btc", mixed, weight(name + ".proj", {run_.heads, d, run_.width}, "[{tp},{},{}]")));
    const Tensor hidden =
        gelu(matmul(norm(y, name + ".ln2"), weight(name + ".fc", {run_.width, 4 * run_.width}, "[{},{tp}]")));
    return add(y, matmul(hidden, weight(name + ".out", {4 * run_.width, run_.width}, "[{tp},{}]")));
  }

  Graph& g_;
  const PublishedRun& run_;
  int64_t stages_;
};

}  // namespace

double publishedFlops(const PublishedRun& run) {
  const auto h = static_cast<double>(run.width);
  const auto layers = static_cast<double>(run.layers);
  const double tokens = static_cast<double>(run.batch) * kTokens;
  return 96 * tokens * layers * h * h * (1 + kTokens / (6 * h) + kVocabulary / (16 * layers * h));
}

CompileOptions requestOf(const PublishedRun& run) {
  CompileOptions request;
  request.machine = "a100-80g";
  request.mesh = absl::StrCat("dp=", run.dp(), ",tp=", run.tp);
  request.micro = run.batch / (run.dp() * run.rows);
  request.zero = 0;
  request.recompute = "none";
  request.schedule = run.virtualStages > 1 ? "interleaved" : "1f1b";
  request.virtualStages = run.virtualStages > 1 ? run.virtualStages : 0;
  return request;
}

absl::StatusOr<ProgramGraph> graphOf(const PublishedRun& run) {
  const CompileOptions request = requestOf(run);
  Graph g;
  const Tensor loss = Model(g, run, run.pp * run.virtualStages).loss();
  WEFT_ASSIGN_OR_RETURN(const std::string text, logicalModule(g, loss, optim::Adam{}, request));
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, "run.mlir", context));
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  WEFT_ASSIGN_OR_RETURN(const PlannerProblem problem, plannerProblem(*module, registry));
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, problem.graphs(request.microBatches()));
  return inPrecision(*graph, DType::kBF16);
}

}  // namespace weft::testing
