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

// sign(0.25 0 + 0.75 g) of what has no sign; the mean goes on as it is.
TEST(Directions, LionTakesZeroAndNanAsTheyAre) {
  const Tensor g = tensor(DType::kF32, {4}, {0, -2, 3, NAN});
  const Tensor m = tensor(DType::kF32, {4}, {0, 0, 0, 1});
  const auto results = run({"lion_direction", {g, m}, {g.spec(), g.spec()}, {{"beta1", 0.25}, {"beta2", 0.5}}});
  EXPECT_EQ(results[0].values[0], 0);
  EXPECT_EQ(results[0].values[1], -1);
  EXPECT_EQ(results[0].values[2], 1);
  EXPECT_TRUE(std::isnan(results[0].values[3]));
  EXPECT_EQ(results[1].values[1], -1);
  EXPECT_TRUE(std::isnan(results[1].values[3]));
}

// Exact in binary: v' = 3/4 16 + 1/4 16 = 16, 4 / (4 + 4); m' = (1/2 0 + 1/2 8), over 1 - 1/2; v likewise 1/4 64 over
// 1 - 3/4: 8 / (8 + 0).
TEST(Directions, AreExactWhereTheNumbersAre) {
  for (const DType type : kFloats) {
    const Tensor g = tensor(type, {1}, {4});
    const Tensor v = tensor(type, {1}, {16});
    const auto rms =
        run({"rms_direction", {g, v}, {g.spec(), g.spec()}, {{"decay", 0.75}, {"gain", 0.25}, {"epsilon", 4.0}}});
    EXPECT_EQ(rms[0].values[0], 0.5);
    EXPECT_EQ(rms[1].values[0], 16);
    const Tensor zero = tensor(type, {1}, {0});
    const auto adam = run({"adam_direction",
                           {tensor(type, {1}, {8}), zero, zero, scalar(DType::kI64, 1)},
                           {g.spec(), g.spec(), g.spec()},
                           {{"beta1", 0.5}, {"beta2", 0.75}, {"epsilon", 0.0}}});
    EXPECT_EQ(adam[0].values[0], 1);
    EXPECT_EQ(adam[1].values[0], 4);
    EXPECT_EQ(adam[2].values[0], 16);
    // 8 (1 - 1/2 1/4) - 2 3
    const auto next = run({"descend",
                           {tensor(type, {1}, {8}), tensor(type, {1}, {3}), scalar(type, 2), scalar(DType::kF32, 0.5)},
                           {g.spec()},
                           {{"weight_decay", 0.25}}});
    EXPECT_EQ(next[0].values[0], 1);
  }
}

// The vectors of onnx v1.20.1, backend/test/data/node: test_adagrad, test_momentum, test_nesterov_momentum and
// test_adam, each in its first update (T = 0), where decay is added to the gradient as here. Their Adam then corrects
// no bias: m / (sqrt(v) + epsilon) is ours with the rate times (1 - beta1) / sqrt(1 - beta2), epsilon over
// sqrt(1 - beta2).
TEST(Update, AgreesWithTheVectorsOfOnnx) {
  constexpr auto f = DType::kF32;
  constexpr Tolerance kRounding = {0, 1e-6};
  const Tensor one = tensor(f, {1}, {1});
  const auto rms = run({"rms_direction",
                        {tensor(f, {1}, {-1 + 0.001}), tensor(f, {1}, {2})},
                        {one.spec(), one.spec()},
                        {{"epsilon", 1e-5}}});
  expectNear(rms[1], {2.9980010986328125}, kRounding);
  const auto adagrad = run({"descend", {one, rms[0], scalar(f, 0.1), scalar(f, 0.1)}, {one.spec()}});
  expectNear(adagrad[0], {1.0576962232589722}, kRounding);
  const Tensor x = tensor(f, {2}, {1.2, 2.8});
  const Tensor g = tensor(f, {2}, {-0.94, -2.5});
  const Tensor v = tensor(f, {2}, {1.7, 3.6});
  const auto sgd =
      run({"sgd", {x, g, v, scalar(f, 0.1)}, {x.spec(), x.spec()}, {{"momentum", 0.95}, {"weight_decay", 0.001}}});
  expectNear(sgd[0], {1.1323800086974, 2.7077200412750}, kRounding);
  expectNear(sgd[1], {0.6762000322342, 0.9227998256683}, kRounding);
  const auto nesterov = run({"sgd",
                             {x, g, v, scalar(f, 0.1)},
                             {x.spec(), x.spec()},
                             {{"momentum", 0.95}, {"weight_decay", 0.01}, {"nesterov", int64_t{1}}}});
  expectNear(nesterov[0], {1.2275350093842, 2.9571399688721}, kRounding);
  expectNear(nesterov[1], {0.6870000362396, 0.9479999542236}, kRounding);
  const double root = std::sqrt(1 - 0.1);
  const auto adam =
      run({"adam",
           {x, g, v, tensor(f, {2}, {0.1, 0.1}), scalar(f, 0.1 * (1 - 0.95) / root), scalar(DType::kI32, 1)},
           {x.spec(), x.spec(), x.spec()},
           {{"beta1", 0.95}, {"beta2", 0.1}, {"epsilon", 1e-7 / root}, {"weight_decay", 0.001}}});
  expectNear(adam[0], {1.0250363349915, 2.6610326766968}, kRounding);
  expectNear(adam[1], {1.5680600404739, 3.2951397895813}, kRounding);
  expectNear(adam[2], {0.8032107949257, 5.6224069595337}, {1e-6, 0});
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
  expectError({"adam_direction", {p, p, p, scalar(DType::kI32, 0)}, three}, absl::StatusCode::kOutOfRange, "step 0");
  expectError({"adam_direction", {p, p, p, lr}, three}, kInvalid, "input 3 is f32 [], it must be i32 []");
  expectError({"rms_direction", {p, other}, {p.spec(), p.spec()}}, kInvalid, "input 1 is f32 [3], it must be f32 [4]");
  expectError({"lion_direction", {p, p}, {p.spec(), other.spec()}}, kInvalid, "output 1 is f32 [3]");
  expectError({"descend", {p, p, p, lr}, {p.spec()}}, kInvalid, "input 2 is f32 [4], it must be f32 []");
}

}  // namespace
}  // namespace weft::testing
