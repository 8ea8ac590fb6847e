#include <cmath>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kSize = 21;
const std::vector<DType> kFloats = {DType::kF32, DType::kF64};

struct SgdAttributes {
  double momentum, decay;
  bool nesterov;
};

// PyTorch's form: the first step's buffer is d, which zeros give too.
void sgdReference(const SgdAttributes& a, double lr, const Reals& g, Reals& p, Reals& buffer) {
  for (size_t i = 0; i < p.size(); ++i) {
    const double d = g[i] + a.decay * p[i];
    buffer[i] = a.momentum * buffer[i] + d;
    p[i] -= lr * (a.nesterov ? d + a.momentum * buffer[i] : buffer[i]);
  }
}

TEST(Sgd, FollowsTheFormulaForSomeSteps) {
  for (const DType type : kFloats) {
    for (const SgdAttributes& a :
         std::vector<SgdAttributes>{{0, 0, false}, {0.9, 0, false}, {0.9, 0.1, false}, {0.9, 0.1, true}}) {
      Tensor p = sample(type, {kSize}, 1);
      Tensor buffer = tensor(type, {kSize}, Reals(kSize, 0.0));
      Reals expectedP = p.values;
      Reals expectedBuffer = buffer.values;
      for (uint64_t step = 0; step < 3; ++step) {
        const Tensor g = sample(type, {kSize}, 10 + step);
        sgdReference(a, static_cast<float>(0.1), g.values, expectedP, expectedBuffer);
        const auto results =
            run({"sgd",
                 {p, g, buffer, scalar(DType::kF32, 0.1)},
                 {p.spec(), p.spec()},
                 {{"momentum", a.momentum}, {"weight_decay", a.decay}, {"nesterov", int64_t{a.nesterov}}}});
        p = results[0];
        buffer = results[1];
        // Values below 4, six roundings in each of three steps; the attributes are rounded to f32 too.
        expectNear(p, expectedP, {0, 3 * 6 * 4 * epsilonOf(type)});
        expectNear(buffer, expectedBuffer, {0, 3 * 6 * 4 * epsilonOf(type)});
      }
    }
  }
}

struct AdamAttributes {
  double decay;
  bool decoupled;
};

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.99;
constexpr double kEpsilon = 1e-6;

struct AdamState {
  Reals p, m, v;
};

void adamReference(const AdamAttributes& a, double lr, int step, const Reals& gradient, AdamState& s) {
  for (size_t i = 0; i < s.p.size(); ++i) {
    double g = gradient[i];
    if (a.decoupled) {
      s.p[i] *= 1 - lr * a.decay;
    } else {
      g += a.decay * s.p[i];
    }
    s.m[i] = kBeta1 * s.m[i] + (1 - kBeta1) * g;
    s.v[i] = kBeta2 * s.v[i] + (1 - kBeta2) * g * g;
    const double mean = s.m[i] / (1 - std::pow(kBeta1, step));
    const double square = s.v[i] / (1 - std::pow(kBeta2, step));
    s.p[i] -= lr * mean / (std::sqrt(square) + kEpsilon);
  }
}

AttributeMap attributesOf(const AdamAttributes& a) {
  return {{"beta1", kBeta1},
          {"beta2", kBeta2},
          {"epsilon", kEpsilon},
          {"weight_decay", a.decay},
          {"decoupled", int64_t{a.decoupled}}};
}

TEST(Adam, FollowsTheFormulaForSomeSteps) {
  for (const DType type : kFloats) {
    for (const AdamAttributes& a : std::vector<AdamAttributes>{{0, false}, {0.1, false}, {0.1, true}}) {
      const Tensor zeros = tensor(type, {kSize}, Reals(kSize, 0.0));
      std::vector<Tensor> state = {sample(type, {kSize}, 1), zeros, zeros};
      AdamState expected{state[0].values, zeros.values, zeros.values};
      for (int step = 1; step <= 4; ++step) {
        const Tensor g = sample(type, {kSize}, 20 + static_cast<uint64_t>(step));
        const double lr = static_cast<float>(0.01);
        adamReference(a, lr, step, g.values, expected);
        const DType stepType = step % 2 == 0 ? DType::kI64 : DType::kI32;
        state = run({"adam",
                     {state[0], g, state[1], state[2], scalar(type, lr), scalar(stepType, step)},
                     {zeros.spec(), zeros.spec(), zeros.spec()},
                     attributesOf(a)});
        // An update is below 0.1 and right to some 20 roundings of itself; p below 1 is rounded twice a step. beta2 in
        // f32 is off by half a unit of 1 against 1 - beta2 = 0.01: 100 times that relative error in v.
        expectNear(state[0], expected.p, {0, 4 * 16 * epsilonOf(type)});
        expectNear(state[1], expected.m, {0, 32 * epsilonOf(type)});
        expectNear(state[2], expected.v, {0, 32 * epsilonOf(type)});
      }
    }
  }
}

TEST(Update, ApplySaysWhether) {
  const Tensor p = sample(DType::kF32, {kSize}, 1);
  const Tensor g = sample(DType::kF32, {kSize}, 2);
  const Tensor m = sample(DType::kF32, {kSize}, 3);
  const Tensor v = sample(DType::kF32, {kSize}, 4, 0, 1);
  const Tensor lr = scalar(DType::kF32, 0.1);
  const Tensor step = scalar(DType::kI32, 3);
  const Call sgd{"sgd", {p, g, m, lr}, {p.spec(), p.spec()}, {{"momentum", 0.9}}};
  const Call adam{"adam", {p, g, m, v, lr, step}, {p.spec(), p.spec(), p.spec()}};
  for (const Call& plain : {sgd, adam}) {
    Call call = plain;
    call.inputs.push_back(scalar(DType::kBool, 1));
    const auto always = run(plain);
    const auto applied = run(call);
    call.inputs.back() = scalar(DType::kBool, 0);
    const auto kept = run(call);
    for (size_t i = 0; i < always.size(); ++i) {
      expectSame(applied[i], always[i]);
      expectSame(kept[i], plain.inputs[i == 0 ? 0 : i + 1]);
    }
    for (const InPlacePair& pair : describe(specOf(call), Target::kCpu).inPlace) {
      call.inPlace = pair;
      expectSame(run(call)[pair.output], plain.inputs[pair.input]);
    }
  }
}

TEST(Update, Errors) {
  const Tensor p = sample(DType::kF32, {4}, 1);
  const Tensor other = sample(DType::kF32, {3}, 1);
  const Tensor lr = scalar(DType::kF32, 0.1);
  const std::vector<TensorSpec> three(3, p.spec());
  expectError({"sgd", {p, other, p, lr}, {p.spec(), p.spec()}}, kInvalid, "input 1 is f32 [3], it must be f32 [4]");
  expectError({"sgd", {p, p, p, p}, {p.spec(), p.spec()}}, kInvalid, "input 3 is f32 [4], it must be f32 []");
  expectError({"adam", {p, p, p, p, lr, lr}, three}, kInvalid, "input 5 is f32 [], it must be i32 []");
  expectError({"adam", {p, p, p, p, lr, scalar(DType::kI32, 0)}, three}, absl::StatusCode::kOutOfRange, "step 0");
  expectError({"adam", {p, p, p, p, lr}, three}, kInvalid, "6 to 7 inputs");
}

}  // namespace
}  // namespace weft::testing
