#include "tests/passes/gates/hostile_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "tests/support/own_operators.h"
#include "weft/weft.h"

namespace weft::testing {
namespace {

using Compiled = absl::StatusOr<Program>;

// Two layers; the first with splits by numbers, the second with a layout by pattern.
Compiled mlp(CompileOptions options) {
  Graph g;
  const Tensor x = g.input("x", {8, 6});
  const Tensor target = g.input("target", {8, 4});
  const Tensor w = g.parameter("first.weight", {6, 4}, Init::normal(0.3));
  const Tensor v = g.parameter("second.weight", {4, 4}, Init::uniform(-1, 1), {.fileShape = {16}});
  const Tensor y = relu(matmul(x, w).shard({{1, 2}, {2, 1}})).shard({{2, 1}});
  const Tensor error = matmul(y, v) - target;
  options.devices = 2;
  options.layouts = {{"second.*", "[{},{all}]"}};
  options.gradientOutputs = true;
  return compile(g, mean(error * error), optim::Sgd{.lr = 0.2, .momentum = 0.9}, options);
}

// A token model of `submeshes` submeshes, one per stage where there are stages.
Tensor tokenLoss(Graph& g, int submeshes, bool stages, const nn::Parallel& parallel) {
  const Tensor tokens = g.input("x", {8, 4}, kI32);
  const Tensor labels = g.input("y", {8, 4}, kI32);
  const Tensor table = g.parameter("wte", {10, 4}, Init::normal(0.02));
  Tensor x = dropout(embedding(table, tokens), 0.1);
  for (int i = 0; i < submeshes; ++i) {
    const std::string name = "h" + std::to_string(i);
    const Tensor in = g.parameter(name + ".in", {4, 8}, Init::normal(0.02));
    const Tensor out = g.parameter(name + ".out", {8, 4}, Init::normal(0.02));
    const Scope stage = stages ? g.stage(i) : g.scope("");
    const Scope again = g.recompute();
    Tensor h = matmul(x, in);
    h = parallel.any() ? h.shard({{"dp", "", ""}, {"", "tp"}}) : h;
    x = x + matmul(gelu(h), out);
  }
  const Tensor head = g.parameter("head", {4, 10}, Init::normal(0.02));
  return meanValid(softmaxCrossEntropy(matmul(x, head), labels, -1), labels, -1);
}

Compiled stagesOnOneMesh(CompileOptions options) {
  Graph g;
  const Tensor loss = tokenLoss(g, 2, true, {});
  options.mesh = "dp=2";
  options.micro = 2;
  options.schedule = "zb_h1";
  options.clipNorm = 1;
  return compile(g, loss, optim::AdamW{}, options);
}

Compiled stagesOnTwoMeshes(CompileOptions options) {
  Graph g;
  const Tensor loss = tokenLoss(g, 2, true, {"dp", "tp", false});
  options.stageMeshes = "dp=2,tp=2;dp=2";
  options.micro = 2;
  options.schedule = "1f1b";
  return compile(g, loss, optim::Sgd{}, options);
}

// The vocabulary of 10 is padded for 4 ranks.
Compiled zeroThree(CompileOptions options) {
  Graph g;
  const Tensor loss = tokenLoss(g, 1, false, {});
  options.mesh = "dp=4";
  options.zero = 3;
  options.micro = 2;
  options.regather = true;
  return compile(g, loss, optim::Adam{}, options);
}

Compiled tensorParallel(CompileOptions options) {
  Graph g;
  const Tensor loss = tokenLoss(g, 2, false, {"dp", "tp", false});
  options.mesh = "dp=2,tp=2";
  options.recompute = "gelu";
  return compile(g, loss, optim::AdamW{}, options);
}

Compiled images(CompileOptions options) {
  Graph g;
  const Tensor x = g.input("image", {8, 1, 4, 4});
  const Tensor y = g.input("label", {8}, kI32);
  const Tensor w = g.parameter("conv", {2, 1, 3, 3}, Init::normal(0.3));
  const Tensor gamma = g.parameter("gamma", {2}, Init::ones(), {.frozen = true});
  const Tensor beta = g.parameter("beta", {2});
  const RunningStatistics running = {g.state("mean", {2}, kF32, 0), g.state("variance", {2}, kF32, 1)};
  const Tensor h = batchNorm(conv2d(x, w, {.paddings = {1, 1}}), gamma, beta, running);
  const Tensor flat = reshape(maxPool2d(h, {2, 2}), {8, 8});
  const Tensor logits = matmul(constrain(flat, "[{dp},{}]"), g.parameter("fc", {8, 3}, Init::normal(0.1)));
  options.mesh = "dp=2";
  options.micro = 2;
  return compile(g, mean(softmaxCrossEntropy(logits, y)), optim::Sgd{}, options);
}

// With every fact that an operator of one's own can say, and their gradients as functions.
Compiled ownOperators(CompileOptions options) {
  Graph g;
  const Tensor x = g.input("x", {8, 6});
  const Tensor a = matmul(x, g.parameter("a", {6, 4}, Init::normal(0.3)));
  const Tensor b = matmul(x, g.parameter("b", {6, 4}, Init::normal(0.3)));
  const Tensor rows = apply(addRow(), {apply(gate(), {a, b}).front()}, {{"k", 0.5}}).front();
  const Tensor greatest = apply(rowMax(), {apply(turned(), {rows}).front()}).front();
  options.mesh = "dp=2";
  return compile(g, mean(greatest * greatest), optim::Sgd{}, options);
}

Compiled forwardOnly(CompileOptions options) {
  Graph g;
  const Tensor x = g.input("x", {8, 6});
  const Tensor w = g.parameter("w", {6, 4}, Init::normal(0.3));
  const Tensor h = matmul(x, w);
  const Scope stage = g.stage(1);
  g.output("y", softmax(concat({h, slice(h, {0, 0}, {8, 2})}, 1)));
  options.mesh = "dp=2";
  return compileForward(g, {}, options);
}

const std::map<std::string, std::function<Compiled(CompileOptions)>>& programs() {
  static const std::map<std::string, std::function<Compiled(CompileOptions)>> all = {
      {"mlp", mlp},
      {"stages", stagesOnOneMesh},
      {"stage_meshes", stagesOnTwoMeshes},
      {"zero3", zeroThree},
      {"tensor_parallel", tensorParallel},
      {"images", images},
      {"own_operators", ownOperators},
      {"forward_only", forwardOnly}};
  return all;
}

}  // namespace

std::vector<std::string> hostileProgramNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : programs()) {
    names.push_back(name);
  }
  return names;
}

DumpedProgram dumpedProgram(const std::string& name, const std::string& directory) {
  DumpedProgram program{name};
  CompileOptions options;
  options.dumpDir = directory;
  const Compiled compiled = programs().at(name)(options);
  EXPECT_TRUE(compiled.ok()) << name << ": " << compiled.status();
  program.decisions = compiled.ok() ? compiled->decisions() : "";
  program.plan = compiled.ok() ? compiled->plan : plan::Plan();
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".mlir") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    program.dumps.push_back({path.stem().string(), path.string(), text.str()});
  }
  return program;
}

}  // namespace weft::testing
