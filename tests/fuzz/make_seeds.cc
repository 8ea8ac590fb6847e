// weft-fuzz-seeds FOLDER: writes FOLDER/<target>/valid_..., the inputs from which mutations start: small programs in
// every state, their plans and decisions, and files of every kind that readers take.
//
//   build/release/bin/weft-fuzz-seeds tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "ir/program/program.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/decide/build_program_graph.h"
#include "passes/logical/read_module.h"
#include "passes/pipeline.h"
#include "planner/graph/graph_json.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/table.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tests/fuzz/gzip.h"
#include "tests/support/byte_pairs.h"
#include "weft/weft.h"

namespace weft::fuzz {
namespace {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(const std::string& target, const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(folder_ / target);
    std::ofstream(folder_ / target / ("valid_" + name), std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  std::filesystem::path folder_;
};

// The module of a dump, in memory.
class DumpedModule {
 public:
  absl::Status read(const std::string& path) {
    WEFT_ASSIGN_OR_RETURN(const std::string written, readText(path));
    WEFT_ASSIGN_OR_RETURN(module_, readModule(written, path, context_));
    return absl::OkStatus();
  }

  // As one text: with its decisions record, which a reader of bytes alone would not find.
  std::string text() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module_->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true, false));
    return text;
  }
  absl::StatusOr<std::string> programGraph() {
    const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
    mlir::FailureOr<ProgramGraph> graph = buildProgramGraph(stepFunction(*module_), {registry, {}});
    return mlir::succeeded(graph) ? absl::StatusOr<std::string>(printProgramGraph(*graph))
                                  : absl::InternalError("a module without a program graph");
  }

 private:
  static mlir::DialectRegistry dialects() {
    mlir::DialectRegistry registry;
    registerWeftDialects(registry);
    return registry;
  }

  mlir::MLIRContext context_{dialects(), mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

// A program: its plan, its decisions, and its module in the states that can be compiled further.
absl::Status addProgram(const Corpus& corpus, const std::string& name,
                        const std::function<absl::StatusOr<Program>(const std::string& dumpDir)>& compiled) {
  const std::filesystem::path dump = std::filesystem::temp_directory_path() / ("weft_fuzz_seeds_" + name);
  std::filesystem::remove_all(dump);
  WEFT_ASSIGN_OR_RETURN(const Program program, compiled(dump.string()));
  WEFT_ASSIGN_OR_RETURN(const std::string plan, serializePlan(program.plan));
  corpus.add("plan", name, plan);
  corpus.add("decisions", name, program.decisions());
  for (const auto& entry : std::filesystem::directory_iterator(dump)) {
    const std::string file = entry.path().stem().string();
    if (entry.path().extension() != ".mlir") {
      continue;
    }
    DumpedModule module;
    WEFT_RETURN_IF_ERROR(module.read(entry.path().string()));
    // "00-input" is the module as it came; the others are phases after which compiling may go on from a file.
    for (const char* phase : {"input", "build-update", "mark-recompute", "localize-shapes", "plan-memory"}) {
      if (file.find(phase) != std::string::npos) {
        corpus.add("ir", absl::StrCat(name, "_", file), module.text());
      }
    }
    if (file.find("build-update") != std::string::npos) {
      WEFT_ASSIGN_OR_RETURN(const std::string graph, module.programGraph());
      corpus.add("graph", name, graph);
    }
  }
  std::filesystem::remove_all(dump);
  return absl::OkStatus();
}

// The net of the README, on two ranks.
absl::StatusOr<Program> shardedNet(const std::string& dumpDir) {
  Graph g;
  const Tensor x = g.input("x", {8, 4});
  const Tensor target = g.input("target", {8, 4});
  const Tensor w = g.parameter("w", {4, 4}, Init::normal(0.3));
  const Tensor y = matmul(x, w).named("matmul").shard({{1, 2}, {2, 1}});
  const Tensor difference = relu(y).named("relu").shard({{2, 1}}) - target;
  CompileOptions options;
  options.devices = 2;
  options.micro = 2;
  options.dumpDir = dumpDir;
  return compile(g, mean(difference * difference), optim::Sgd{.lr = 0.2, .momentum = 0.9}, options);
}

// Named axes, ZeRO, Adam, clipping, a pad.
absl::StatusOr<Program> zeroNet(const std::string& dumpDir) {
  Graph g;
  const Tensor x = g.input("x", {8, 6});
  const Tensor label = g.input("label", {8}, kI32);
  const Tensor hidden = gelu(matmul(x, g.parameter("fc1", {6, 8}, Init::normal(0.3))).shard({{"dp", ""}, {"", "tp"}}));
  const Tensor logits = matmul(hidden, g.parameter("fc2", {8, 5}, Init::normal(0.3)));
  CompileOptions options;
  options.mesh = "dp=2,tp=2";
  options.zero = 3;
  options.clipNorm = 1;
  options.layouts = {{"fc1", "[{},{tp}]"}};
  options.dumpDir = dumpDir;
  return compile(g, mean(softmaxCrossEntropy(logits, label)), optim::AdamW{.lr = 0.01}, options);
}

// Two stages on meshes of their own: transfers in parts.
absl::StatusOr<Program> stagedNet(const std::string& dumpDir, const std::string& stageMeshes) {
  Graph g;
  const Tensor target = g.input("target", {8, 4});
  Tensor y = g.input("x", {8, 4});
  {
    const auto stage = g.stage(0);
    y = relu(matmul(y, g.parameter("w0", {4, 4}, Init::normal(0.3))));
  }
  const auto stage = g.stage(1);
  y = matmul(y, g.parameter("w1", {4, 4}, Init::normal(0.3)));
  const Tensor difference = y - target;
  CompileOptions options;
  options.stageMeshes = stageMeshes;
  options.micro = 2;
  options.schedule = "1f1b";
  options.dumpDir = dumpDir;
  return compile(g, mean(difference * difference), optim::Sgd{.lr = 0.2}, options);
}

std::string safetensors(const std::string& header, size_t dataBytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + std::string(dataBytes, '\1');
}

std::string idx(const std::vector<uint32_t>& shape, const std::string& values) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<char>(size >> shift));
    }
  }
  return bytes + values;
}

// encoder.json, a zero byte, vocab.bpe.
std::string fewPairs() {
  testing::BytePairs pairs("#version: 0.2\n\u0120 t\nh e\n\u0120t he\nl l\n");
  pairs.add("<|endoftext|>");
  return pairs.encoder.dump() + std::string(1, '\0') + pairs.merges;
}

void addData(const Corpus& corpus) {
  corpus.add("safetensors", "parameters",
             safetensors(R"({"__metadata__":{"format":"pt"},"fc.weight":{"dtype":"F32","shape":[3,2],"data_offsets":)"
                         R"([0,24]},"fc.bias":{"dtype":"F32","shape":[2,3],"data_offsets":[24,48]}})",
                         48));
  corpus.add("safetensors", "types",
             safetensors(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"BOOL","shape":[],)"
                         R"("data_offsets":[3,4]},"\u00e4":{"dtype":"I64","shape":[0,7],"data_offsets":[4,4]}})",
                         4));
  corpus.add("safetensors", "empty", safetensors("{}", 0));
  const std::string images = idx({2, 3, 2}, "abcdefghijkl");
  corpus.add("idx", "images", images);
  corpus.add("idx", "images_gz", compressed(images));
  corpus.add("idx", "labels", idx({3}, std::string("\0\1\2", 3)));
  corpus.add("text", "ascii", "To be, or not to be, that is the question:\n");
  corpus.add("text", "utf8", "h\u00e4llo \u20ac \U0001D11E w\u00f6rld, \u00e4\u00f6\u00fc");
  corpus.add("bpe", "few_pairs", fewPairs());
}

// A trace of the two-stage plan of tests/support/staged_plan.h: two steps.
std::string trace() {
  std::string text;
  const auto event = [&](int row, const std::string& name, const std::string& category, double begin, double length) {
    absl::StrAppend(&text, text.empty() ? "" : ",\n", "{\"name\":\"", name, "\",\"cat\":\"", category,
                    "\",\"ph\":\"X\",\"pid\":0,\"tid\":", row, ",\"ts\":", begin, ",\"dur\":", length,
                    ",\"args\":{\"function\":\"", name, "\",\"micro-batch\":0}}");
  };
  const auto call = [&](int row, const std::string& function, double begin, int instructions) {
    event(row, function, "action", begin, 100 * instructions);
    for (int i = 0; i < instructions; ++i) {
      event(row, "label", "kernel", begin + 100 * i, 100);
    }
  };
  for (const double at : {0.0, 3000.0}) {
    event(2, "step", "step", at, 2500);
    call(0, "FORWARD", at + 100, 2);
    call(1, "FORWARD", at + 300, 2);
    call(1, "BACKWARD", at + 600, 3);
    call(0, "BACKWARD", at + 900, 2);
    call(1, "UPDATE", at + 1200, 2);
    call(0, "UPDATE", at + 1500, 1);
  }
  return absl::StrCat("{\"traceEvents\":[\n", text, "]}\n");
}

absl::Status addTexts(const Corpus& corpus) {
  for (const schedule::Kind kind : {schedule::Kind::k1F1B, schedule::Kind::kZbH1, schedule::Kind::kZbV}) {
    schedule::Request request;
    request.kind = kind;
    request.ranks = 2;
    request.virtualStages = schedule::defaultVirtualStages(kind);
    request.micros = 4;
    WEFT_ASSIGN_OR_RETURN(const schedule::Table table, schedule::generate(request));
    corpus.add("schedule", schedule::kindName(kind), schedule::printCsv(table));
  }
  corpus.add("schedule", "overlap", "0F0,,(0F1;0B0)OVERLAP_F_B, 0B1\r\n1F0,1B0,1F1,1B1\r\n\n");
  corpus.add("lifetimes", "four", "id,lower,upper,size\nh0,0,3,4096\nh1,1,4,64\nh2,3,9,100\nh3,0,9,1\n");
  corpus.add("lifetimes", "columns", "\xEF\xBB\xBFsize, upper,lower,id\r\n10, 4 ,-2,\xC3\xA4\r\n\r\n7,5,3,b\r\n");
  corpus.add("trace", "two_steps", trace());
  corpus.add("strategy_graph", "two_nodes",
             R"({"problem":{"name":"two","nodes":{"intervals":[[0,2],[1,3]],"costs":[[3,1],[0,2]],"usages":[[4,9],)"
             R"([2,2]]},"edges":{"nodes":[[0,1]],"costs":[[0,5,5,0]]},"usage_limit":10}})");
  corpus.add("strategy_graph", "followers",
             R"({"problem":{"nodes":{"intervals":[[0,5],[1,3],[2,4],[3,3]],"costs":[[3,1.5],[0,2],[9,1e15,2],[4]],)"
             R"("usages":[[4,9],[2,2],[3,0,5],[70]]},"edges":{"nodes":[[0,1],[1,2],[2,0],[2,3]],"costs":[[0,1e18,)"
             R"(1e18,0],[1,2,3,4,5,6],[-2,8,1,0,5,1e18],[7,0,1]]},"usage_limit":12}})");
  corpus.add("flags", "layout", "layout\n--mesh\ndp=2,tp=4\n--shape=16,32\n--layout\n[{dp},{tp}]\n--json");
  corpus.add("flags", "reshard", "reshard\n--mesh=dp=2,tp=4\n--shape=16,32\n--from=[{dp},{tp}]\n--to=[{tp},{dp}]");
  corpus.add("flags", "schedule",
             "schedule\n--kind\nzb_h1\n--stages\n4\n--micro=8\n--times\nf=1,i=2,w=1,comm=0.1\n--timeline");
  corpus.add("layouts", "sums", "dp=2,tp=4\n16,32\n[{dp},{}] partial{tp:sum}\n[{tp},{dp}]\nm n -> m n");
  corpus.add("layouts", "line", "8\n16,32\n[{all:(2)4},{}]\n[{},{all:(1)2}]\nm! n~ -> m! n~");
  corpus.add("layouts", "pad", "<dp=3, micro=2>\n7,4\n[{dp},{}] pad{0:9}\n[{},{}]\nb k -> b k");
  corpus.add("example_flags", "common", "--mesh\ndp=2,tp=2\n--zero=3\n--steps\n20\n--regather\n--lr=0.01\n--seed\n7");
  return absl::OkStatus();
}

absl::Status make(const std::string& folder) {
  const Corpus corpus(folder);
  WEFT_RETURN_IF_ERROR(addProgram(corpus, "sharded", shardedNet));
  WEFT_RETURN_IF_ERROR(addProgram(corpus, "zero", zeroNet));
  WEFT_RETURN_IF_ERROR(
      addProgram(corpus, "stages", [](const std::string& dump) { return stagedNet(dump, "dp=2;dp=2"); }));
  WEFT_RETURN_IF_ERROR(
      addProgram(corpus, "stage_meshes", [](const std::string& dump) { return stagedNet(dump, "dp=2;dp=4"); }));
  addData(corpus);
  return addTexts(corpus);
}

}  // namespace
}  // namespace weft::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "weft-fuzz-seeds FOLDER: writes the valid inputs of all fuzz targets there\n");
    return 2;
  }
  const absl::Status status = weft::fuzz::make(argv[1]);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 1;
}
