// A net learns to multiply, on 2 ranks: train PLAN PARAMETERS writes the plan that predicts, and what was learned.
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "weft/weft.h"

namespace {

constexpr int64_t kBatch = 64;
constexpr int64_t kHidden = 32;
constexpr int64_t kSteps = 1000;

weft::Tensor product(weft::Graph& g, const weft::Tensor& x) {
  const weft::nn::LinearSettings settings = {.init = weft::Init::normal(0.5)};
  const weft::nn::Linear in(g, "in", 2, kHidden, settings);
  const weft::nn::Linear out(g, "out", kHidden, 1, settings);
  return out(weft::tanh(in(x)));
}

absl::Status train(const std::string& plan, const std::string& parameters) {
  weft::CompileOptions options;
  options.devices = 2;

  weft::Graph g;
  const weft::Tensor error = product(g, g.input("x", {kBatch, 2})) - g.input("target", {kBatch, 1});
  WEFT_ASSIGN_OR_RETURN(const weft::Program program,
                        weft::compile(g, weft::mean(error * error), weft::optim::Adam{.lr = 0.01}, options));

  weft::Trainer trainer(program, {.progress = false});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  WEFT_RETURN_IF_ERROR(trainer.fit(kSteps, [&](int64_t, weft::Feed& feed) {
    std::vector<float> x;
    std::vector<float> target;
    for (int64_t row = 0; row < kBatch; ++row) {
      x.insert(x.end(), {number(random), number(random)});
      target.push_back(x[2 * row] * x[2 * row + 1]);
    }
    feed.write("x", x);
    feed.write("target", target);
  }));
  std::cout << "trained on " << program.plan.ranks() << " ranks: loss " << trainer.losses().front() << " -> "
            << trainer.losses().back() << "\n";

  weft::Graph forward;
  forward.output("product", product(forward, forward.input("x", {kBatch, 2})));
  WEFT_ASSIGN_OR_RETURN(const weft::Program prediction,
                        weft::compileForward(forward, weft::Tensor(), weft::forwardOptions(program, options)));
  WEFT_RETURN_IF_ERROR(weft::writePlan(prediction.plan, plan));
  return trainer.save(parameters);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: train PLAN PARAMETERS\n";
    return 2;
  }
  const absl::Status status = train(argv[1], argv[2]);
  if (!status.ok()) {
    std::cerr << "train: " << status << "\n";
    return 1;
  }
  return 0;
}
