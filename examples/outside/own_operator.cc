// An operator of one's own, registered from outside: a net with the parametric relu (He et al., "Delving deep into
// rectifiers", 2015) trains on 2 ranks, and one with the same made of Weft's operators beside it.
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include "runtime/base/status.h"
#include "weft/weft.h"

namespace {

constexpr int64_t kBatch = 64;
constexpr int64_t kHidden = 16;
constexpr int64_t kSteps = 200;

// y = x where x > 0, else slope x, for x [rows, channels] and slope [channels].
weft::OwnOperator prelu() {
  weft::OwnOperator own;
  own.name = "prelu";
  own.results = [](const std::vector<weft::ValueType>& in,
                   const weft::AttributeMap&) -> absl::StatusOr<std::vector<weft::ValueType>> {
    if (in.size() != 2 || in[0].shape.size() != 2 || in[1].shape != weft::Shape{in[0].shape[1]}) {
      return absl::InvalidArgumentError("takes x [rows, channels] and slope [channels]");
    }
    return std::vector<weft::ValueType>{in[0]};
  };
  own.rule = [](const std::vector<weft::ValueType>&) { return "r c, c -> r c"; };
  own.work = 2;
  own.gradient = [](const weft::OwnGradient& g) -> std::vector<weft::Tensor> {
    const weft::Tensor& x = g.operands[0];
    const weft::Tensor& dy = g.resultGradients[0];
    const weft::Tensor isPositive = weft::compare(x, 0, "gt");
    return {weft::select(isPositive, dy, dy * g.operands[1]), weft::sum(weft::select(isPositive, 0, dy * x), {0})};
  };
  return own;
}

// Of a rank's part: the shapes are its own.
class PreluKernel : public weft::Kernel {
 public:
  explicit PreluKernel(const weft::KernelSpec& spec)
      : count_(spec.inputs[0].elements()), channels_(spec.inputs[1].elements()) {}

  absl::Status run(const weft::KernelArguments& args) override {
    const auto* x = static_cast<const float*>(args.inputs[0]);
    const auto* slope = static_cast<const float*>(args.inputs[1]);
    auto* y = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < count_; ++i) {
      y[i] = x[i] > 0 ? x[i] : slope[i % channels_] * x[i];
    }
    return absl::OkStatus();
  }

 private:
  int64_t count_;
  int64_t channels_;
};

weft::KernelRegistry ownKernels() {
  weft::KernelRegistry kernels;
  kernels.add("prelu", [](const weft::KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<weft::Kernel>> {
    if (spec.inputs.size() != 2 || spec.inputs[0].type != weft::DType::kF32) {
      return absl::InvalidArgumentError("prelu takes two f32 tensors");
    }
    return std::make_unique<PreluKernel>(spec);
  });
  return kernels;
}

using Activation = std::function<weft::Tensor(const weft::Tensor& x, const weft::Tensor& slope)>;

// The loss after training on 2 ranks.
absl::StatusOr<double> train(const Activation& activation) {
  weft::Graph g;
  const weft::nn::LinearSettings settings = {.init = weft::Init::normal(0.5)};
  const weft::nn::Linear in(g, "in", 2, kHidden, settings);
  const weft::nn::Linear out(g, "out", kHidden, 1, settings);
  const weft::Tensor slope = g.parameter("slope", {kHidden}, weft::Init::constant(0.25));
  const weft::Tensor error = out(activation(in(g.input("x", {kBatch, 2})), slope)) - g.input("target", {kBatch, 1});
  weft::CompileOptions options;
  options.devices = 2;
  WEFT_ASSIGN_OR_RETURN(const weft::Program program,
                        weft::compile(g, weft::mean(error * error), weft::optim::Adam{.lr = 0.01}, options));
  weft::Trainer trainer(program, {.progress = false, .kernels = ownKernels()});
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
  return trainer.losses().back();
}

absl::Status run() {
  WEFT_ASSIGN_OR_RETURN(const double own, train([](const weft::Tensor& x, const weft::Tensor& slope) {
                          return weft::apply(prelu(), {x, slope}).front();
                        }));
  WEFT_ASSIGN_OR_RETURN(const double composed, train([](const weft::Tensor& x, const weft::Tensor& slope) {
                          return weft::select(weft::compare(x, 0, "gt"), x, x * slope);
                        }));
  std::cout << "prelu on 2 ranks: loss " << own << ", composed of others " << composed << "\n";
  return std::abs(own - composed) < 1e-4 ? absl::OkStatus() : absl::InternalError("they should be equal");
}

}  // namespace

int main() {
  const absl::Status status = run();
  if (!status.ok()) {
    std::cerr << "own_operator: " << status << "\n";
    return 1;
  }
  return 0;
}
